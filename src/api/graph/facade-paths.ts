import type { FastifyRequest } from 'fastify';
import { listPhoneNumbers } from '../../features/accounts/accounts.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { ExternalContext } from '../external/external-app.ts';
import { accountOf } from '../keys/api-key-auth.ts';
import { requireScope } from '../keys/key-check.ts';
import { noSuchObject } from './facade-error.ts';

/** Upstream names versions as `v26.0`, and takes paths without one too. */
export const FACADE_ROOTS = ['/graph/:version(^v\\d+\\.\\d+$)', '/graph'] as const;

type ObjectParams = { version?: string; id: string };

export type ObjectRoute = { Params: ObjectParams; Querystring: Record<string, string | string[]> };

/** The address of the facade as the client of this request writes it, without a slash at the end. */
export function facadeUrl(
  { publicUrl }: Pick<ExternalContext, 'publicUrl'>,
  { params: { version } }: FastifyRequest<ObjectRoute>,
): string {
  return version === undefined ? `${publicUrl}/graph` : `${publicUrl}/graph/${version}`;
}

export async function hasNumber(database: Database, wabaId: string, id: string): Promise<boolean> {
  const numbers = await listPhoneNumbers(database, wabaId);
  return numbers.some(({ phoneNumberId }) => phoneNumberId === id);
}

/** Throws FacadeError for what is no phone number of the WABA. */
export async function requireNumber(database: Database, wabaId: string, id: string): Promise<void> {
  if (!(await hasNumber(database, wabaId, id))) throw noSuchObject();
}

/** Upstream takes `Authorization: OAuth <token>` too, as its older SDKs write it. */
function takeOAuthToken({ headers }: FastifyRequest): void {
  const token = /^OAuth +(\S+) *$/i.exec(headers.authorization ?? '')?.[1];
  if (token !== undefined) headers.authorization = `Bearer ${token}`;
}

declare module 'fastify' {
  interface FastifyRequest {
    queryToken: string | null;
  }
}

/**
 * Some clients put the access token into the query. It is read like the header, and taken out of the address before
 * anything logs it or passes it on.
 */
export function takeTokenFromQuery(request: FastifyRequest): void {
  takeOAuthToken(request);
  const query = request.query as Record<string, unknown>;
  const { access_token: token } = query;
  delete query.access_token;
  const isToken = typeof token === 'string';
  if (isToken) {
    request.headers.authorization ??= `Bearer ${token}`;
    request.queryToken = token;
  }
  const [path = '', search = ''] = (request.raw.url ?? '').split('?', 2);
  const left = new URLSearchParams(search);
  if (!isToken && !left.has('input_token')) return;
  for (const name of ['access_token', 'input_token']) left.delete(name);
  request.raw.url = left.size === 0 ? path : `${path}?${left}`;
}

const IN_QUERY =
  `The API key may stand in the query only with the scope graph_query: servers on the way keep addresses
  in their logs. Send it as "Authorization: Bearer", and revoke it if it must stay secret.`.replace(
    /\s+/g,
    ' ',
  );

/** Throws ApiError 403 for a key in the query that was not made for that. */
export function refuseKeyInQuery(request: FastifyRequest): void {
  if (request.queryToken !== null) requireScope(accountOf(request).scopes, ['graph_query'], IN_QUERY);
}
