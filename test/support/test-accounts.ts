import { randomInt } from 'node:crypto';
import { ENDPOINT_SECRET } from '../../src/engine/endpoint/endpoint-secrets.ts';
import { insertEndpoint, nextEndpointId } from '../../src/engine/endpoint/store.ts';
import { newWebhookSecret } from '../../src/engine/endpoint/webhook-signature.ts';
import { insertTenant, savePhoneNumber, saveWaba } from '../../src/features/accounts/accounts.ts';
import { type EventIdHash, openEventIdHash } from '../../src/platform/crypto/installation-secret.ts';
import { makeSecretBox, type SecretBox } from '../../src/platform/crypto/secret-box.ts';
import type { EventType } from '../../src/platform/event-type.ts';
import type { Database } from '../../src/platform/postgres/database.ts';

export const testSecretBox: SecretBox = makeSecretBox([{ id: 'test', key: Buffer.alloc(32, 7) }]);

/** As processes with the test's encryption key hash. */
export function testEventIdHash(database: Database): EventIdHash {
  return openEventIdHash({ database, secretBox: testSecretBox });
}

/** The tenants, WABAs and numbers that the upstream fixtures speak of. */
const FIXTURE_ACCOUNTS = [
  {
    wabaId: '900000000000101',
    phoneNumberIds: ['800000000000111', '800000000000112'],
    name: 'Fixture Store',
  },
  { wabaId: '900000000000202', phoneNumberIds: ['800000000000221'], name: 'Fixture Bazaar' },
];

/** Adds the fixtures' accounts; returns the tenant ids by WABA. */
export async function seedFixtureAccounts(database: Database): Promise<Map<string, string>> {
  const tenants = new Map<string, string>();
  for (const account of FIXTURE_ACCOUNTS) {
    tenants.set(account.wabaId, await addAccount(database, account));
  }
  return tenants;
}

/** Adds a tenant with a WABA and its numbers; returns the id of the tenant. */
async function addAccount(
  database: Database,
  { wabaId, phoneNumberIds, name }: (typeof FIXTURE_ACCOUNTS)[number],
): Promise<string> {
  const tenantId = await insertTenant(database, name);
  await saveWaba(database, tenantId, { wabaId, accessTokenSealed: null });
  for (const phoneNumberId of phoneNumberIds) {
    const number = { displayPhoneNumber: '12025550100', verifiedName: name, qualityRating: 'GREEN' };
    await savePhoneNumber(database, wabaId, { phoneNumberId, ...number });
  }
  return tenantId;
}

export type FreshTenant = { tenantId: string; wabaId: string; number: string; secondNumber: string };

/** Adds a tenant that no other test knows, with a WABA and two numbers, whose ids are as long as the fixtures'. */
export async function freshTenant(database: Database, name = 'Fixture Store'): Promise<FreshTenant> {
  const run = randomInt(1e12, 9e12);
  const [wabaId, number, secondNumber] = [`95${run}`, `85${run}`, `86${run}`];
  const tenantId = await addAccount(database, { wabaId, phoneNumberIds: [number, secondNumber], name });
  return { tenantId, wabaId, number, secondNumber };
}

/** Adds an endpoint and returns its id and secret. */
export async function addEndpoint(
  database: Database,
  wabaId: string,
  url: string,
  eventTypes: EventType[] | null = null,
): Promise<{ id: string; secret: string }> {
  const id = await nextEndpointId(database);
  const secret = newWebhookSecret();
  const secretSealed = testSecretBox.seal(secret, ENDPOINT_SECRET.place(id));
  await insertEndpoint(database, wabaId, { id, url, description: '', eventTypes, secretSealed });
  return { id, secret };
}
