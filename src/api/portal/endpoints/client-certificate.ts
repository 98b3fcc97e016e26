import type { EndpointStatus } from '../../../features/endpoints/endpoints.ts';
import type { Viewer } from '../access/viewer.ts';
import { actionButton, postForm, textArea } from '../components/form.ts';
import { detailList } from '../components/table.ts';
import { exactTime, relativeText } from '../components/time.ts';
import { html, type Markup } from '../markup.ts';
import { mayChange } from './endpoint-status.ts';

const SOON_MS = 14 * 86_400_000;

/** What is shown of a client certificate, and the forms that set and remove it; its key is never shown. */
export function certificateControls(
  viewer: Viewer,
  path: string,
  { clientCertificate: present }: EndpointStatus,
  now: Date,
): Markup {
  const set = postForm(
    viewer,
    `${path}/client-certificate`,
    html`${textArea({ label: 'Certificate (PEM)', name: 'certificate', rows: 6, maxLength: 16_384, hint: 'The certificate itself first, then its chain up to what your server trusts.' })}
${textArea({ label: 'Private key (PEM)', name: 'privateKey', rows: 6, isSecret: true, maxLength: 16_384, hint: 'Without a passphrase. It is encrypted and never shown.' })}
<div class="buttons"><button>${present === null ? 'Set the certificate' : 'Replace the certificate'}</button></div>`,
  );
  const remove =
    present !== null && actionButton(viewer, `${path}/client-certificate/remove`, 'Remove it', 'danger');
  const isSoon = present !== null && present.expiresAt.getTime() - now.getTime() < SOON_MS;
  return html`${
    present === null
      ? html`<p>None: your server knows Heliograph by the signature alone. With a certificate it can refuse all other connections (mutual TLS).</p>`
      : html`${isSoon && html`<p class="problem">${present.expiresAt <= now ? 'It has expired' : 'It expires soon'}: have a new one issued and set it here.</p>`}
${detailList([
  ['Subject', present.subject],
  ['Issuer', present.issuer],
  ['SHA-256', html`<code class="break">${present.fingerprint}</code>`],
  ['Expires', html`${exactTime(present.expiresAt)} (${relativeText(present.expiresAt, now)})`],
])}`
  }
${mayChange(viewer) && html`<details class="quiet"><summary>${present === null ? 'Set a certificate' : 'Replace or remove it'}</summary>${set}${remove}</details>`}`;
}
