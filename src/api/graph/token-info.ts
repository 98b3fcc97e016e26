import type { FastifyRequest } from 'fastify';
import { findApiKeyDetails } from '../../features/keys/api-key-store.ts';
import { listOf, membersOf } from '../../platform/json/json-members.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { accountOf } from '../keys/api-key-auth.ts';
import { notPermitted } from './facade-error.ts';

/** The rights that a token of upstream needs for the calls of the facade. */
const SCOPES_OF_UPSTREAM = ['whatsapp_business_management', 'whatsapp_business_messaging'];

/** Upstream's form for a token whose app is not known. */
const NO_APP = '0';

/**
 * GET /debug_token: some software asks what its access token may do before it accepts it. The answer describes the API
 * key; the app is one that the WABA sends its webhooks to. Throws FacadeError for any other token than that of the request.
 */
export async function tokenInfo(
  database: Database,
  request: FastifyRequest,
  readEdge: (edge: 'subscribed_apps') => Promise<string>,
): Promise<unknown> {
  const { wabaId, keyId } = accountOf(request);
  const { input_token: token } = request.query as Record<string, unknown>;
  const isOwn = typeof token === 'string' && request.headers.authorization === `Bearer ${token}`;
  const key = isOwn ? await findApiKeyDetails(database, wabaId, keyId) : null;
  if (key === null) throw notPermitted('The input_token must be the API key of the request.');
  const expiresAt = key.expiresAt === null ? 0 : Math.floor(key.expiresAt.getTime() / 1000);
  return {
    data: {
      app_id: appIdsIn(await readEdge('subscribed_apps'))[0] ?? NO_APP,
      type: 'SYSTEM_USER',
      application: 'Heliograph',
      data_access_expires_at: 0,
      expires_at: expiresAt,
      is_valid: true,
      scopes: SCOPES_OF_UPSTREAM,
      granular_scopes: SCOPES_OF_UPSTREAM.map((scope) => ({ scope, target_ids: [wabaId] })),
    },
  };
}

/** Of each app its id and name: where else the webhooks of a WABA go is not the tenant's to know. */
export function namesOfApps(text: string): string {
  const apps = listOf(membersOf(JSON.parse(text)).data).map(({ whatsapp_business_api_data: app }) => {
    const { id, name } = membersOf(app);
    return { whatsapp_business_api_data: { id, name } };
  });
  return JSON.stringify({ data: apps });
}

/** The apps that a WABA sends to, as `subscribed_apps` lists them. */
export function appIdsIn(text: string): string[] {
  return listOf(membersOf(JSON.parse(text)).data).flatMap(({ whatsapp_business_api_data: app }) => {
    const { id } = membersOf(app);
    return typeof id === 'string' ? [id] : [];
  });
}
