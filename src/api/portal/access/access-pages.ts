import { parseEncryptionKeys } from '../../../platform/crypto/secret-box.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { accountPages } from '../users/account-page.ts';
import { invitationPages } from '../users/invitation-page.ts';
import { createKnownDevices } from '../users/known-devices.ts';
import { createOidcClient } from '../users/oidc-client.ts';
import { oidcPages } from '../users/oidc-pages.ts';
import { setUpPages } from '../users/set-up-page.ts';
import { createSignInLimit } from '../users/sign-in-limit.ts';
import { signInPages } from '../users/sign-in-page.ts';
import { tenantUserPages } from '../users/users-page.ts';
import type { FormTokens } from './form-tokens.ts';
import { startPage } from './start-page.ts';

/** Signing in and out, set-up, invitations, one's own account, and the users of a tenant. */
export function accessPages(app: PortalApp, context: PortalContext, tokens: FormTokens): void {
  const { config, database } = context;
  const encryptionKeys = parseEncryptionKeys(config.encryptionKeys);
  const devices = createKnownDevices(encryptionKeys.map(({ key }) => key));
  const limit = createSignInLimit(database, devices);
  const oidc = createOidcClient(config);
  const hasOidc = oidc !== null;
  signInPages(app, context, { tokens, limit, hasOidc });
  if (oidc !== null) oidcPages(app, context, { client: oidc, tokens, limit });
  setUpPages(app, context, {
    database,
    encryptionKeys,
    tokens,
  });
  invitationPages(app, context, { tokens, limit, hasOidc });
  accountPages(app, context, { limit, hasOidc });
  startPage(app, context);
  tenantUserPages(app, context);
}
