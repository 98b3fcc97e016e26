import { listTenantWabas } from '../../../features/accounts/accounts.ts';
import { brandOf } from '../../../features/accounts/brands.ts';
import type { SeenPortalLink, UsedPortalLink } from '../../../features/users/portal-link-store.ts';
import { openPortalLink, seePortalLink } from '../../../features/users/portal-links.ts';
import { postForm } from '../components/form.ts';
import { action } from '../kits/action.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html } from '../markup.ts';
import { hrefWith, pageOfWaba } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { isFramed, isInPlace } from './framing.ts';
import { linkOverPage } from './link-over.ts';
import { PAGES } from './page-access.ts';
import { sendPage, setPortalHeaders } from './send-page.ts';
import { beginInBrowser, sessionCookie } from './session-cookie.ts';

const PATH = '/portal/enter/:token';

/** A page that did open: the link is gone, not wrong. */
const GONE = 410;

/** /portal/enter/:token: looking at a link, as previews do, uses nothing up; its button does. */
export function enterPages(app: PortalApp, context: PortalContext): void {
  viewPage(app, context, {
    path: PATH,
    access: PAGES.open,
    active: '',
    view: async (visit) => {
      const link = await linkHere(visit);
      if (!link?.isOpen) return sendPage(visit.reply, linkOverPage('link', link), GONE);
      const button = html`<div class="buttons"><button class="primary" ${isFramed(visit.request) && 'data-press-at-once'}>Open the portal</button></div>`;
      const body = html`${signedInNote(visit)}${postForm(visit.formToken, visit.path, button)}`;
      return { title: link.businessName, viewer: null, body };
    },
  });
  action(app, context, {
    path: PATH,
    access: PAGES.open,
    act: async (visit) => {
      const { request, reply, visitor } = visit;
      const token = visit.param('token');
      // The session of an earlier link, which pages for everybody do not see otherwise.
      const present = request.portalAwaiting?.viewer.link ? request.portalAwaiting : null;
      const link = await linkHere(visit);
      const opened = link?.isOpen ? await openPortalLink(context, token, present, visitor) : null;
      if (opened === null) return sendPage(reply, linkOverPage('link', link), GONE);
      if (opened.isRenewed) sessionCookie.set(reply, opened.token);
      else await beginInBrowser(visit, opened.token);
      return await pageOf(context, opened);
    },
  });
}

/** The link, with whose origin its frame is; one that is elsewhere than in its frame is not open. */
async function linkHere(visit: Visit): Promise<SeenPortalLink | null> {
  const { request, reply, context } = visit;
  const link = await seePortalLink(context.database, visit.param('token'));
  if (link !== null) request.portalBrand = await brandOf(context.database, link.tenantId);
  if (link === null || isInPlace(request, link)) {
    request.portalFrameOrigin = link?.embedOrigin ?? null;
    setPortalHeaders(reply);
    return link;
  }
  return { ...link, isOpen: false };
}

/** Opening a link must not end another person's session unasked. */
function signedInNote({ request }: Visit) {
  const { viewer } = request.portalSession ?? {};
  return viewer !== undefined && html`<p>You are signed in here as ${viewer.email}. That session ends.</p>`;
}

/** Of several WABAs the person chooses one first. */
async function pageOf(
  { database }: Pick<PortalContext, 'database'>,
  { tenantId, wabaIds, page }: Pick<UsedPortalLink, 'tenantId' | 'wabaIds' | 'page'>,
): Promise<string> {
  const [first, ...more] = await listTenantWabas(database, tenantId, wabaIds);
  if (first === undefined || more.length > 0) return hrefWith('/portal', { page });
  return pageOfWaba(first.wabaId, page);
}
