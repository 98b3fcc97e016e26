import type { FastifyRequest } from 'fastify';
import { listPhoneNumbers } from '../../accounts/accounts.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { notAllowed } from './facade-error.ts';

/** Upstream names versions as `v26.0`. */
export const FACADE_ROOT = '/graph/:version(^v\\d+\\.\\d+$)';

type ObjectParams = { version: string; id: string };

export type ObjectRoute = { Params: ObjectParams; Querystring: Record<string, string | string[]> };

export async function hasNumber(database: Database, wabaId: string, id: string): Promise<boolean> {
  const numbers = await listPhoneNumbers(database, wabaId);
  return numbers.some(({ phoneNumberId }) => phoneNumberId === id);
}

/** Throws FacadeError for what is no phone number of the WABA. */
export async function requireNumber(database: Database, wabaId: string, id: string): Promise<void> {
  if (!(await hasNumber(database, wabaId, id))) throw notAllowed();
}

/**
 * Some clients put the access token into the query. It is read like the header, and taken out of the address before
 * anything logs it or passes it on.
 */
export function takeTokenFromQuery(request: FastifyRequest): void {
  const query = request.query as Record<string, unknown>;
  const { access_token: token } = query;
  delete query.access_token;
  if (typeof token !== 'string') return;
  request.headers.authorization ??= `Bearer ${token}`;
  const [path = '', search = ''] = (request.raw.url ?? '').split('?', 2);
  const left = new URLSearchParams(search);
  left.delete('access_token');
  request.raw.url = left.size === 0 ? path : `${path}?${left}`;
}
