import { expect, test } from 'vitest';
import { hashApiKey } from '../../../../src/features/keys/api-key.ts';
import { findPlatformKeys } from '../../../../src/features/keys/platform-key-store.ts';
import { startAdmin } from '../../../support/admin-cli.ts';
import { tablesHolding } from '../../../support/database-scan.ts';

test('an operator makes platform keys, sees them without the key, and revokes them', async () => {
  const { json, admin, database } = await startAdmin();
  const create = (...args: string[]) => json('platform-key', 'create', '--name', 'crm', ...args);
  expect(await create()).toMatchObject({ scopes: ['read'], grantableScopes: [], allowedNetworks: null });
  const made = await create(
    '--scopes',
    'read,keys',
    '--networks',
    '203.0.113.0/28',
    '--expires',
    '2999-01-01T00:00:00Z',
  );
  expect(made).toMatchObject({
    platformKey: expect.stringMatching(/^hp_[0-9a-f]{64}$/),
    scopes: ['read', 'keys'],
    grantableScopes: ['send', 'manage_webhooks'],
    allowedNetworks: ['203.0.113.0/28'],
  });
  expect(await tablesHolding(database, [made.platformKey])).toEqual([]);
  const [listed] = (await json('platform-key', 'list')).filter(({ id }: { id: string }) => id === made.id);
  expect(listed).toMatchObject({ state: 'active', name: 'crm', expiresAt: '2999-01-01T00:00:00.000Z' });
  expect(JSON.stringify(listed)).not.toContain(made.platformKey);
  await json('platform-key', 'revoke', made.id);
  const [state] = await findPlatformKeys(database, [hashApiKey(made.platformKey)]);
  expect(state?.isRevoked).toBe(true);
  for (const args of [
    ['--scopes', 'everything'],
    ['--scopes', 'read', '--grantable', 'send'],
    ['--scopes', 'keys', '--grantable', 'everything'],
    ['--networks', '203.0.113.0/99'],
    ['--networks', '203.0.113.0/28', '--from-anywhere'],
  ]) {
    const { exitCode, stderr } = await admin(['platform-key', 'create', '--name', 'x', ...args]);
    expect([args, exitCode, stderr.startsWith('error: ')]).toEqual([args, 2, true]);
  }
});

test('there are no more than 50 platform keys; a revoked one counts no more', async () => {
  const { json, admin, database } = await startAdmin({ empty: true });
  await database.raw(
    `insert into platform_keys (name, key_hash, prefix, last_four, scopes)
     select 'k' || n, decode(md5(n::text), 'hex'), 'hp_', '0000', '{read}' from generate_series(1, 50) as n`,
  );
  const refused = await admin(['platform-key', 'create', '--name', 'x']);
  expect([refused.exitCode, refused.stderr]).toEqual([
    1,
    'error: There are 50 platform keys. Revoke one first.\n',
  ]);
  await json('platform-key', 'revoke', '1');
  await json('platform-key', 'create', '--name', 'x');
});

test('the operations of the platform API are commands, which check as the API does and read tokens from standard input', async () => {
  const { json, admin } = await startAdmin();
  const made = await json(
    'platform',
    'put-tenant',
    'acme',
    '--business-name',
    'Acme Ltd',
    '--metadata',
    '{"plan": "gold"}',
  );
  expect(made).toMatchObject({ externalId: 'acme', businessName: 'Acme Ltd', metadata: { plan: 'gold' } });
  const waba = await admin(
    ['platform', 'put-waba', 'acme', '95123', '--access-token-stdin', '--json'],
    'EAAG-secret\n',
  );
  expect(JSON.parse(waba.stdout)).toMatchObject({ wabaId: '95123', hasAccessToken: true });
  // An operator may give what platform keys may not.
  const key = await json(
    'platform',
    'put-tenant-key',
    'acme',
    '95123',
    'shop',
    '--name',
    'x',
    '--scopes',
    'read,export',
  );
  expect(key).toMatchObject({ keyRef: 'shop', scopes: ['read', 'export'], apiKey: expect.any(String) });
  expect(await json('platform', 'put-tenant-policy', 'acme', '--media-days', '90')).toMatchObject({
    mediaDays: 90,
  });
  expect(await json('platform', 'put-tenant-policy', 'acme', '--media-days', 'default')).toMatchObject({
    mediaDays: null,
  });
  await json('platform', 'update-tenant', 'acme', '--state', 'suspended');
  expect((await json('platform', 'list-tenants', '--state', 'suspended')).data).toMatchObject([
    { externalId: 'acme' },
  ]);
  const text = await admin(['platform', 'get-tenant', 'acme']);
  expect(text.stdout).toMatch(/^state +suspended$/m);
  for (const [args, words] of [
    [['get-tenant', 'a b'], 'externalId'],
    [['update-tenant', 'acme', '--state', 'gone'], 'state'],
    [['put-tenant', 'acme', '--business-name', 'x', '--metadata', 'x'], 'JSON'],
    [['get-tenant', 'nobody'], 'There is no such tenant'],
    [['remove-tenant', 'acme', '--confirm', 'x'], 'confirm'],
  ] as const) {
    const { exitCode, stderr } = await admin(['platform', ...args]);
    expect([args, exitCode !== 0, stderr]).toEqual([args, true, expect.stringContaining(words)]);
  }
  expect(await json('platform', 'remove-tenant', 'acme', '--confirm', 'acme')).toMatchObject({
    wabaIds: ['95123'],
  });
});
