import { PLATFORM_SCOPES } from '../../../../src/features/keys/platform-key-store.ts';
import { createPlatformKey, type NewPlatformKey } from '../../../../src/features/keys/platform-keys.ts';
import { OPERATOR_COMMAND } from '../../../../src/platform/audit/audit.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import type { TestApi } from '../api-harness.ts';

/** A platform key, with every scope unless some are named. */
export async function addPlatformKey(database: Database, given: Partial<NewPlatformKey> = {}) {
  const tools = { database, actor: OPERATOR_COMMAND };
  const wanted = { name: 'crm', scopes: PLATFORM_SCOPES, ...given };
  const { id, platformKey } = await createPlatformKey(tools, wanted, 'development');
  return { id, platformKey, authorization: `Bearer ${platformKey}` };
}

export type PlatformClient = ReturnType<typeof clientWith>;

export function clientWith({ app }: TestApi, authorization: string) {
  return async (
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    payload?: object,
    headers: Record<string, string> = {},
  ) => {
    const url = `/api/platform${path}`;
    const response = await app.inject({
      method,
      url,
      headers: { authorization, ...headers },
      ...(payload && { payload }),
    });
    const { statusCode: status, headers: given } = response;
    const isText = String(given['content-type']).startsWith('text/');
    return { status, body: isText ? response.body : response.json(), headers: given };
  };
}

/** Calls the platform API with a key that may do everything. */
export async function platformClient(api: TestApi, given: Partial<NewPlatformKey> = {}) {
  const { authorization } = await addPlatformKey(api.database, given);
  return clientWith(api, authorization);
}

let drawn = 0;

/** A name and a WABA that no other test has. */
export function fresh() {
  drawn += 1;
  const digits = `${Date.now() % 1e9}${drawn}`.padStart(13, '7');
  return { name: `acme-${digits}`, wabaId: `95${digits}`, number: `85${digits}` };
}

/** A tenant with a WABA. */
export async function tenantOf(ask: PlatformClient) {
  const made = fresh();
  await ask('PUT', `/tenants/${made.name}`, { businessName: 'Acme Ltd' });
  const phoneNumbers = [{ phoneNumberId: made.number, displayPhoneNumber: '12025550100' }];
  await ask('PUT', `/tenants/${made.name}/wabas/${made.wabaId}`, { phoneNumbers });
  return made;
}

/** What a refusal says to programs. */
export const errorOf = ({ status, body }: Awaited<ReturnType<PlatformClient>>) => [
  status,
  body.error?.code,
  body.error?.param,
];
