import { listTenantWabas } from '../../../features/accounts/accounts.ts';
import { LINK_PAGES } from '../../../features/users/portal-link-store.ts';
import { switchTenant } from '../../../features/users/sign-in.ts';
import { parseEncryptionKeys } from '../../../platform/crypto/secret-box.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { formLine } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { viewPage } from '../kits/view-page.ts';
import { html } from '../markup.ts';
import { pageOfWaba } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { accountPages } from '../users/account-page.ts';
import { invitationPages } from '../users/invitation-page.ts';
import { createOidcClient } from '../users/oidc-client.ts';
import { oidcPages } from '../users/oidc-pages.ts';
import { secondFactorPages } from '../users/second-factor-page.ts';
import { setUpPages } from '../users/set-up-page.ts';
import { createKnownDevices, createSignInLimit } from '../users/sign-in-limit.ts';
import { signInPages } from '../users/sign-in-page.ts';
import { userPages } from '../users/user-pages.ts';
import { enterPages } from './enter-pages.ts';
import { requireFreshProof } from './fresh-proof.ts';
import { PAGES, withoutFreshProof } from './page-access.ts';
import { pageNotFound } from './page-error.ts';
import { isOperatorElsewhere } from './viewer.ts';

export function accessPages(app: PortalApp, context: PortalContext): void {
  const { config, database } = context;
  const encryptionKeys = parseEncryptionKeys(config.encryptionKeys);
  const devices = createKnownDevices(encryptionKeys.map(({ key }) => key));
  const limit = createSignInLimit(database, devices);
  const oidc = createOidcClient(config);
  const hasOidc = oidc !== null;
  requireFreshProof(app, context, { limit, hasOidc });
  signInPages(app, context, { limit, hasOidc });
  if (oidc !== null) oidcPages(app, context, { client: oidc, limit });
  secondFactorPages(app, context, limit);
  if (config.portal.passwordSignIn) setUpPages(app, context, { database, encryptionKeys });
  invitationPages(app, context, { limit, hasOidc });
  accountPages(app, context, { limit, hasOidc });
  enterPages(app, context);
  startPage(app, context);
  userPages(app, context);
}

const OPERATORS_ELSEWHERE = {
  title: 'Operators work elsewhere',
  body: html`<p>This installation shows the pages of operators at another address, or to other networks only.</p>`,
};

/** /portal: to the WABA of the viewer, to the choice among several, or to the operator's pages. */
function startPage(app: PortalApp, context: PortalContext): void {
  const { database } = context;
  viewPage(app, context, {
    path: '/portal',
    access: PAGES.signedIn,
    active: '',
    query: ['page'],
    view: async (visit) => {
      const { viewer } = visit;
      if (isOperatorElsewhere(viewer)) return OPERATORS_ELSEWHERE;
      if (viewer.tenantId === null) return '/portal/operator/health';
      const wabas = await listTenantWabas(database, viewer.tenantId, viewer.link?.wabaIds);
      const page = LINK_PAGES.find((name) => name === visit.query('page')) ?? 'overview';
      const [first] = wabas;
      if (first !== undefined && wabas.length === 1) return pageOfWaba(first.wabaId, page);
      const rows = wabas.map(({ wabaId, numbers }) => [
        html`<a class="mono" href="${pageOfWaba(wabaId, page)}">${wabaId}</a>`,
        numbers.join(', ') || '–',
      ]);
      const none = 'The operator of this installation adds your WhatsApp Business Account.';
      const body =
        rows.length > 0
          ? dataTable('Your WABAs', ['WABA', 'Phone numbers'], rows)
          : emptyState('No WABAs yet', none);
      return { title: 'Choose a WABA', wabaIds: [], body };
    },
  });
  action(app, context, {
    path: '/portal/tenant',
    access: withoutFreshProof(PAGES.signedIn, 'it shows another tenant and changes nothing'),
    fields: { tenant: formLine() },
    needsAll: true,
    act: async ({ viewer, session, actor }, given) => {
      const wanted = given.text('tenant');
      const place = viewer.places.find(({ tenantId }) => (tenantId ?? '') === wanted);
      if (place === undefined) throw pageNotFound();
      await switchTenant(context, session, place.tenantId, actor);
      return '/portal';
    },
  });
}
