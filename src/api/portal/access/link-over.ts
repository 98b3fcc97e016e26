import type { PortalLinkGrant } from '../../../features/users/portal-link-store.ts';
import { html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';

type Ways = Pick<PortalLinkGrant, 'returnUrl' | 'refreshUrl'>;

const NO_WAY: Ways = { returnUrl: null, refreshUrl: null };

/** To the product that made the link, at an address that the operator has listed. */
export function wayBack({ refreshUrl, returnUrl }: Ways, target: '_blank' | '_top' = '_top'): Markup {
  const href = refreshUrl ?? returnUrl;
  if (href === null) return html`Open the portal again from where you came`;
  return html`<a class="button" href="${href}" target="${target}" rel="noopener">Open it again from ${new URL(href).host}</a>`;
}

/** The page of a link that was used, or of its session that has ended. */
export function linkOverPage(what: 'link' | 'session', ways: Ways | null): PageView {
  const title = what === 'link' ? 'This link cannot be used' : 'The session is over';
  const text =
    what === 'link'
      ? 'It works once, within five minutes. It was used already, or it is too old.'
      : 'Sessions end after a while, or when they are ended from outside.';
  const back = wayBack(ways ?? NO_WAY);
  return { title, viewer: null, body: html`<p>${text}</p><p>${back}</p>` };
}
