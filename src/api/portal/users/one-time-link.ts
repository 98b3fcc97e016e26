import type { MadeInvitation } from '../../../users/invitations.ts';
import { copyable } from '../components/copyable.ts';
import { exactTime } from '../components/time.ts';
import { html, type Markup } from '../markup.ts';

/** A link that was just made, which nothing shows again, and the way back to `backPath`. */
export function oneTimeLink(
  publicUrl: string,
  { email, path, expiresAt }: MadeInvitation,
  backPath: string,
): Markup {
  return html`<div class="card"><p>Send this link to <strong>${email}</strong>. It works once, until ${exactTime(expiresAt)}, and is not shown again.</p>
<p>${copyable(`${publicUrl}${path}`)}</p></div>
<p><a class="button" href="${backPath}">Back to the users</a></p>`;
}
