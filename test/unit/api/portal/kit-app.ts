import Fastify, { type LightMyRequestResponse } from 'fastify';
import { makePageCursors } from '../../../../src/api/external/page.ts';
import { readFormBodies } from '../../../../src/api/plugins/body-parsers.ts';
import { createFormTokens } from '../../../../src/api/portal/access/form-tokens.ts';
import { requireDeclaredAccess } from '../../../../src/api/portal/access/page-access.ts';
import { sendErrorPage } from '../../../../src/api/portal/access/page-error.ts';
import { refuseForeignForms } from '../../../../src/api/portal/access/portal-access.ts';
import type { Viewer } from '../../../../src/api/portal/access/viewer.ts';
import type { PortalApp, PortalContext } from '../../../../src/api/portal/portal-app.ts';

const PUBLIC_URL = 'https://heliograph.example';
const CSRF = 'the-token-of-this-session';

/** A value that would like to be markup. */
export const HOSTILE = `"><script>alert('x')</script>`;
export const ESCAPED = '&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;';

type Browser = {
  get(url: string): Promise<LightMyRequestResponse>;
  post(url: string, fields?: Record<string, string>, token?: string): Promise<LightMyRequestResponse>;
};

/** A portal of the pages that `register` adds, seen by a user of the WABA 77; forms are checked as everywhere. */
export async function portalOf(
  register: (app: PortalApp, context: PortalContext) => void,
  role: Viewer['role'] = 'admin',
): Promise<Browser> {
  const app = Fastify();
  readFormBodies(app);
  const viewer: Viewer = {
    userId: '1',
    tenantId: '5',
    email: 'ann@shop.example',
    name: 'Ann',
    role,
    csrfToken: CSRF,
    step: 'whole',
    isOperatorAddress: false,
    places: [],
    notices: [],
    link: null,
    isProofFresh: true,
    passwordLinkBy: null,
    passwordLink: null,
    begunBy: 'password',
    hasSecondFactor: false,
    provenAt: new Date(0),
    expiresAt: new Date(0),
    proofs: { password: true, totp: false, identity: false },
  };
  app.decorateRequest('portalSession', null);
  app.decorateRequest('portalWaba', null);
  app.decorateRequest('portalNewAlerts', null);
  app.addHook('onRequest', async (request) => {
    request.portalSession = { id: '9', viewer };
    request.portalWaba = { wabaId: '77', tenantId: '5', businessName: 'Shop' };
  });
  app.setErrorHandler(sendErrorPage);
  requireDeclaredAccess(app);
  refuseForeignForms(app, createFormTokens([Buffer.alloc(32, 1)]), PUBLIC_URL);
  const context = { cursors: makePageCursors([Buffer.alloc(32, 1)]), now: () => 0, accounts: {} };
  register(app as unknown as PortalApp, context as unknown as PortalContext);
  return {
    get: (url) => app.inject({ url }),
    post: (url, fields = {}, token = CSRF) =>
      app.inject({
        method: 'POST',
        url,
        headers: { origin: PUBLIC_URL, 'content-type': 'application/x-www-form-urlencoded' },
        payload: new URLSearchParams({ _csrf: token, ...fields }).toString(),
      }),
  };
}

/** The links of a page by their texts. */
export function linksOf({ body }: LightMyRequestResponse): Record<string, string> {
  const links = body.matchAll(/<a[^>]* href="([^"]*)"[^>]*>([^<]*)<\/a>/g);
  return Object.fromEntries([...links].map(([, href = '', text]) => [text, href.replaceAll('&amp;', '&')]));
}
