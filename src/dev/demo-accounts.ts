import { findWaba } from '../accounts/accounts.ts';
import { createTenant } from '../accounts/tenants.ts';
import { addWaba } from '../accounts/wabas.ts';
import { storeEndpoint } from '../endpoints/endpoints.ts';
import { findEndpointSecret, listEndpoints, setEndpointUrl } from '../endpoints/store.ts';
import { hashApiKey } from '../keys/api-key-format.ts';
import { findApiKey } from '../keys/api-key-store.ts';
import { createKey } from '../keys/api-keys.ts';
import type { AccountTools } from '../platform/account-tools.ts';
import { type Audited, SYSTEM } from '../platform/audit/audit.ts';
import { endpointSecretPlace } from '../platform/crypto/secret-places.ts';

/** One tenant of the demonstration with everything that its server needs. Holds secrets. */
export type DemoTenant = {
  userId: number;
  businessName: string;
  wabaId: string;
  phoneNumberIds: string[];
  apiKey: string;
  endpointId: string;
  webhookSecret: string;
};

/** What an earlier run made: its API keys can be had nowhere else. */
type PreviousTenant = { readonly wabaId: string; readonly apiKey: string; readonly endpointId: string };

/** The ids follow the conventions of the upstream fixtures. */
const DEMO_ACCOUNTS = [
  {
    businessName: 'Fixture Store',
    wabaId: '900000000000101',
    phoneNumbers: [
      {
        phoneNumberId: '800000000000111',
        displayPhoneNumber: '12025550100',
        verifiedName: 'Fixture Store',
      },
      {
        phoneNumberId: '800000000000112',
        displayPhoneNumber: '12025550101',
        verifiedName: 'Fixture Store 2',
      },
    ],
  },
  {
    businessName: 'Fixture Bazaar',
    wabaId: '900000000000202',
    phoneNumbers: [
      {
        phoneNumberId: '800000000000221',
        displayPhoneNumber: '910000000221',
        verifiedName: 'Fixture Bazaar',
      },
    ],
  },
];

/**
 * Makes sure that the demonstration's tenants exist, each with WABA, numbers, access token, a usable API key and a
 * webhook endpoint at `receiverUrl`. What is there is kept; a key that is not in `previous` is lost and made anew.
 * Throws SecretBoxError when the database was filled under another encryption key.
 */
export async function seedDemoAccounts(
  { database, secretBox }: AccountTools,
  options: { receiverUrl: string; sandboxAccessToken: string; previous: readonly PreviousTenant[] },
): Promise<DemoTenant[]> {
  const tools = { database, secretBox, actor: SYSTEM };
  const tenants: DemoTenant[] = [];
  for (const account of DEMO_ACCOUNTS) {
    const { businessName, wabaId, phoneNumbers } = account;
    const known = await findWaba(tools.database, wabaId);
    const userId = known?.tenantId ?? (await createTenant(tools, businessName)).userId;
    await addWaba(tools, userId, { wabaId, phoneNumbers, accessToken: options.sandboxAccessToken });
    const previous = options.previous.find((tenant) => tenant.wabaId === wabaId);
    const url = `${options.receiverUrl.replace(/\/+$/, '')}/webhook/${wabaId}`;
    tenants.push({
      userId: Number(userId),
      businessName: known?.businessName ?? businessName,
      wabaId,
      phoneNumberIds: phoneNumbers.map((number) => number.phoneNumberId),
      apiKey: await usableKey(tools, wabaId, previous?.apiKey),
      ...(await usableEndpoint(tools, wabaId, url, previous?.endpointId)),
    });
  }
  return tenants;
}

async function usableKey(
  tools: AccountTools & Audited,
  wabaId: string,
  previousKey: string | undefined,
): Promise<string> {
  if (previousKey !== undefined) {
    const key = await findApiKey(tools.database, hashApiKey(previousKey));
    if (key?.wabaId === wabaId && !key.isRevoked && !key.isExpired) return previousKey;
  }
  return (await createKey(tools, wabaId, { name: 'demo', expiresAt: null })).apiKey;
}

/** The receiver's port may have changed since the earlier run: its endpoint, and what waits for it, moves along. */
async function usableEndpoint(
  tools: AccountTools & Audited,
  wabaId: string,
  url: string,
  previousId: string | undefined,
): Promise<{ endpointId: string; webhookSecret: string }> {
  const endpoints = await listEndpoints(tools.database, wabaId);
  const kept =
    endpoints.find((endpoint) => endpoint.id === previousId) ??
    endpoints.find((endpoint) => endpoint.url === url);
  if (kept === undefined) {
    const description = 'sample tenant of the demonstration';
    const { id, secret } = await storeEndpoint(tools, wabaId, { url, description });
    return { endpointId: id, webhookSecret: secret };
  }
  if (kept.url !== url) await setEndpointUrl(tools.database, wabaId, { id: kept.id, url });
  const sealed = await findEndpointSecret(tools.database, wabaId, kept.id);
  if (sealed === null) throw new Error('a webhook endpoint vanished while it was read');
  return { endpointId: kept.id, webhookSecret: tools.secretBox.open(sealed, endpointSecretPlace(kept.id)) };
}
