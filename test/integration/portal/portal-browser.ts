import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { inviteUser } from '../../../src/features/users/invitations.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { type FreshTenant, freshTenant } from '../../support/test-accounts.ts';
import { PUBLIC_URL } from '../api/api-harness.ts';

export const PASSWORD = 'correct horse battery';
const { host: HOST } = new URL(PUBLIC_URL);

/** What a browser does without a script: it keeps cookies, and sends the headers that browsers send. */
export type PortalBrowser = {
  cookies: Map<string, string>;
  get(path: string, headers?: Record<string, string>): Promise<LightMyRequestResponse>;
  /**
   * Sends a form, as a list where a field is there more than once, as a text as it is written. `_csrf` is that of the
   * page seen last unless given.
   */
  post(
    path: string,
    fields?: Record<string, string> | [string, string][] | string,
    headers?: Record<string, string | undefined>,
  ): Promise<LightMyRequestResponse>;
  /** The token in the form of the page seen last. */
  token(): string;
};

let browsers = 0;

/** Each browser has an address of its own, so that tests do not use up each other's attempts. */
function newAddress(): string {
  browsers += 1;
  return `10.7.${browsers >> 8}.${browsers & 255}`;
}

export function openBrowser(app: FastifyInstance, remoteAddress = newAddress()): PortalBrowser {
  const cookies = new Map<string, string>();
  let token = '';
  const send = async (request: {
    method: 'GET' | 'POST';
    url: string;
    headers: Record<string, string | undefined>;
    payload?: string;
  }) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const given = Object.entries({ host: HOST, ...(cookie && { cookie }), ...request.headers });
    const headers = Object.fromEntries(given.filter(([, value]) => value !== undefined));
    const answer = await app.inject({
      ...request,
      headers: headers as Record<string, string>,
      remoteAddress,
    });
    for (const { name, value, maxAge, expires } of answer.cookies) {
      const isGone = maxAge === 0 || (expires !== undefined && expires.getTime() <= Date.now());
      if (isGone) cookies.delete(name);
      else cookies.set(name, value);
    }
    token = /name="_csrf" value="([^"]+)"/.exec(answer.body)?.[1] ?? token;
    return answer;
  };
  return {
    cookies,
    token: () => token,
    get: (url, headers = {}) => send({ method: 'GET', url, headers }),
    post: (url, fields = {}, headers = {}) =>
      send({
        method: 'POST',
        url,
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          origin: PUBLIC_URL,
          'sec-fetch-site': 'same-origin',
          ...headers,
        },
        payload: typeof fields === 'string' ? fields : formText(fields, token),
      }),
  };
}

function formText(fields: Record<string, string> | [string, string][], token: string): string {
  return new URLSearchParams(Array.isArray(fields) ? fields : { _csrf: token, ...fields }).toString();
}

/** Adds a user by an invitation that is accepted, and returns the browser that is signed in. */
export async function addUser(
  { app, database }: { app: FastifyInstance; database: Database },
  user: { email: string; role: string; tenantId: string | null; name?: string },
): Promise<PortalBrowser> {
  const authority = { actor: SYSTEM, tenantId: null, userId: null };
  const { path } = await inviteUser({ database }, authority, user);
  const browser = openBrowser(app);
  await browser.get(path);
  const answer = await browser.post(path, { name: user.name ?? 'Asha', password: PASSWORD });
  if (answer.statusCode !== 303) throw new Error(`the invitation was not accepted: ${answer.body}`);
  return browser;
}

export type PortalUser = { email: string; id: string; browser: PortalBrowser };

let people = 0;

/** Adds a user with an address that nobody else has; without a tenant it is an operator. */
export async function newUser(
  api: { app: FastifyInstance; database: Database },
  tenantId: string | null,
  role = tenantId === null ? 'operator' : 'member',
): Promise<PortalUser> {
  people += 1;
  const email = `person${people}@portal.example`;
  const browser = await addUser(api, { email, role, tenantId });
  const [row] = await query<{ id: string }>(api.database, 'select id from users where email = :email', {
    email,
  });
  return { email, id: row?.id ?? '', browser };
}

/** `path`: where the pages of its WABA are. */
export type Office = FreshTenant & { path: string; admin: PortalBrowser; adminEmail: string };

/** A tenant that no other test knows, with an administrator who is signed in. */
export async function newOffice(
  api: { app: FastifyInstance; database: Database },
  name?: string,
): Promise<Office> {
  const tenant = await freshTenant(api.database, name);
  const { browser: admin, email: adminEmail } = await newUser(api, tenant.tenantId, 'admin');
  return { ...tenant, path: `/portal/w/${tenant.wabaId}`, admin, adminEmail };
}

/** Makes whoever is signed in there belong to another tenant too, in which the session is then. */
export async function joinTenant(
  { database }: { database: Database },
  browser: PortalBrowser,
  user: { email: string; role: string; tenantId: string | null },
): Promise<LightMyRequestResponse> {
  const authority = { actor: SYSTEM, tenantId: null, userId: null };
  const { path } = await inviteUser({ database }, authority, user);
  await browser.get(path);
  return await browser.post(path);
}

/** The one-time link that a page shows. */
export function linkIn({ body }: { body: string }): string {
  return /\/portal\/invitations\/[\w-]{43}/.exec(body)?.[0] ?? '';
}

/** Signs in by the form and returns its answer. */
export async function signInWith(
  browser: PortalBrowser,
  email: string,
  password = PASSWORD,
): Promise<LightMyRequestResponse> {
  await browser.get('/portal/sign-in');
  return await browser.post('/portal/sign-in', { email, password, next: '/portal' });
}

/** The tenant of a WABA. */
export async function tenantOf(database: Database, wabaId: string): Promise<string> {
  const { rows } = await database.raw('select tenant_id from wabas where waba_id = :wabaId', { wabaId });
  return rows[0].tenant_id;
}

/** Sends a form from the page of the account, whose token is good for every form. */
export async function postSignedIn(
  browser: PortalBrowser,
  path: string,
  fields: Record<string, string> = {},
): Promise<LightMyRequestResponse> {
  await browser.get('/portal/account');
  return await browser.post(path, fields);
}
