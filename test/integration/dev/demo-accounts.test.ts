import { describe, expect, test } from 'vitest';
import { seedDemoAccounts } from '../../../dev/start.ts';
import { listEndpoints } from '../../../src/engine/endpoint/store.ts';
import { listTenants } from '../../../src/features/accounts/accounts.ts';
import { hashApiKey } from '../../../src/features/keys/api-key.ts';
import { findApiKey, revokeApiKey } from '../../../src/features/keys/api-key-store.ts';
import { OTHER_WABA, WABA } from '../../support/admin-cli.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';

const RECEIVER = 'http://127.0.0.1:8091';

async function demo() {
  const { database } = await testDatabase();
  const tools = { database, secretBox: testSecretBox };
  const seed = (previous: Awaited<ReturnType<typeof seedDemoAccounts>>, receiverUrl = RECEIVER) =>
    seedDemoAccounts(tools, { receiverUrl, sandboxAccessToken: 'sandbox-token', previous });
  return { database, seed };
}

describe('seedDemoAccounts', () => {
  test('makes two tenants that are ready for use, and the same again on every later start', async () => {
    const { database, seed } = await demo();
    const first = await seed([]);
    expect(first).toMatchObject([
      {
        userId: expect.any(Number),
        businessName: 'Fixture Store',
        wabaId: WABA,
        phoneNumberIds: ['800000000000111', '800000000000112'],
      },
      {
        businessName: 'Fixture Bazaar',
        wabaId: OTHER_WABA,
        phoneNumberIds: ['800000000000221'],
      },
    ]);
    for (const { apiKey, wabaId } of first) {
      expect(await findApiKey(database, hashApiKey(apiKey))).toMatchObject({ wabaId, isRevoked: false });
      expect(await listEndpoints(database, wabaId)).toMatchObject([{ url: `${RECEIVER}/webhook/${wabaId}` }]);
    }
    expect(await seed(first)).toEqual(first);
    expect(await listTenants(database)).toHaveLength(2);
  });

  test('makes a key anew when the old one is lost or revoked, and keeps the endpoint and its secret', async () => {
    const { database, seed } = await demo();
    const first = await seed([]);
    const second = await seed([]);
    for (const [index, tenant] of second.entries()) {
      const { apiKey, ...rest } = first[index] ?? { apiKey: '' };
      expect(tenant).toMatchObject(rest);
      expect(tenant.apiKey).not.toBe(apiKey);
    }
    const key = await findApiKey(database, hashApiKey(second[0]?.apiKey ?? ''));
    await revokeApiKey(database, WABA, key?.id ?? '');
    const third = await seed(second);
    expect(third[0]?.apiKey).not.toBe(second[0]?.apiKey);
    expect(third[1]).toEqual(second[1]);
  });

  test('moves the endpoint along when the receiver has another port', async () => {
    const { database, seed } = await demo();
    const first = await seed([]);
    const second = await seed(first, 'http://127.0.0.1:9191');
    expect(second).toEqual(first);
    expect(await listEndpoints(database, WABA)).toMatchObject([
      { id: first[0]?.endpointId, url: `http://127.0.0.1:9191/webhook/${WABA}` },
    ]);
  });
});
