import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createTenant } from '../../../src/features/accounts/accounts.ts';
import { readTenantPolicy } from '../../../src/features/accounts/tenant-policies.ts';
import { addEndpoint } from '../../../src/features/endpoints/endpoints.ts';
import {
  createPlatformKey,
  type NewPlatformKey,
  revokePlatformKey,
} from '../../../src/features/keys/platform-keys.ts';
import { setOperationsUrl } from '../../../src/ops/alerts/operations-url.ts';
import { QUESTIONS } from '../../../src/ops/health/questions.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { seededDatabase, testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';

const SAFE = { HELIOGRAPH_PORTAL_SECOND_FACTOR: 'operators', HELIOGRAPH_MEDIA_URL_TTL_SECONDS: '604800' };

test('the doctor names an installation without second factor, expiry of URLs or quotas, and no development one', async () => {
  const { database, url } = await testDatabase();
  const found = async (mode: 'production' | 'development', settings = {}) => {
    const loaded = loadConfig(testSettings(url, settings));
    const config = { ...loaded, mode, webhooks: { ...loaded.webhooks, ports: [443, 8443] } };
    return (await QUESTIONS.safety.ask({ config, database })).map(
      ({ status, detail }) => `${status} ${detail}`,
    );
  };
  const { userId } = await createTenant({ database, actor: SYSTEM }, 'New');
  expect(await readTenantPolicy(database, userId)).toMatchObject({
    storedBytesQuota: 107_374_182_400,
    uploadFilesPerDay: 10_000,
    uploadBytesPerDay: 10_737_418_240,
  });
  expect(await found('development')).toEqual([]);
  expect(await found('production', SAFE)).toEqual([expect.stringMatching(/^up /)]);
  expect(await found('production')).toEqual([
    expect.stringMatching(/^degraded .*second factor/),
    expect.stringMatching(/^degraded URLs .*never expire/),
  ]);
  await database.raw('update tenant_policies set stored_bytes_quota = null');
  expect(await found('production', SAFE)).toEqual(['degraded 1 tenants have no quota for stored files']);
  await database.raw('update tenant_policies set upload_files_per_day = null, upload_bytes_per_day = null');
  expect(await found('production', SAFE)).toEqual([
    'degraded 1 tenants have no quota for stored files',
    'degraded 1 tenants have no quota for the number of files that are uploaded per day',
    'degraded 1 tenants have no quota for the bytes that are uploaded per day',
  ]);
});

test('the doctor names the endpoints and operations URLs on ports that new ones may not have', async () => {
  const { database, url } = await seededDatabase();
  const rules = { allowHttp: false, guard: makeAddressGuard({ allowCidrs: [] }), resolve: async () => [] };
  const tools = { database, secretBox: testSecretBox, urlRules: rules, maxTimeoutMs: 15_000, actor: SYSTEM };
  const found = async () => {
    const loaded = loadConfig(testSettings(url, SAFE));
    const webhooks = { ...loaded.webhooks, ports: [443, 8443] };
    const config = { ...loaded, mode: 'production', webhooks } as const;
    return (await QUESTIONS.safety.ask({ config, database })).flatMap(({ detail }) =>
      detail.includes('other ports') ? [detail] : [],
    );
  };
  const add = (given: string) => addEndpoint(tools, '900000000000101', { url: given });
  for (const given of ['https://shop.example/a:1', 'https://shop.example:8443/', 'https://[2606:4700::1]/'])
    await add(given);
  expect(await found()).toEqual([]);
  const { id } = await add('https://shop.example:9443/hook');
  await setOperationsUrl(tools, '900000000000202', 'https://[2606:4700::1]:22/');
  expect(await found()).toEqual([
    expect.stringContaining(`endpoint ${id} (9443), operations URL of WABA 900000000000202 (22)`),
  ]);
});

test('the doctor names platform keys that make ways in and may be used from anywhere', async () => {
  const { database, url } = await testDatabase();
  const tools = { database, actor: SYSTEM };
  const add = (given: Partial<NewPlatformKey>) =>
    createPlatformKey(tools, { name: 'crm', scopes: ['read', 'keys'], ...given }, 'production');
  await expect(add({})).rejects.toThrow('A key with keys needs networks');
  await add({ networks: ['203.0.113.0/28'] });
  await add({ scopes: ['read', 'tenants', 'wabas'] });
  const found = async () => {
    const config = { ...loadConfig(testSettings(url, SAFE)), mode: 'production' } as const;
    return (await QUESTIONS.safety.ask({ config, database })).filter(({ detail }) =>
      detail.includes('platform keys'),
    );
  };
  expect(await found()).toEqual([]);
  const { id } = await add({ fromAnywhere: true });
  expect(await found()).toMatchObject([
    { status: 'degraded', detail: expect.stringContaining(`${id} (crm)`) },
  ]);
  await revokePlatformKey(tools, id);
  expect(await found()).toEqual([]);
});

test('the command shows it for an installation in production', async () => {
  const { database, url } = await testDatabase();
  await createTenant({ database, actor: SYSTEM }, 'New');
  await database.raw('update tenant_policies set upload_bytes_per_day = null');
  const env = {
    PATH: process.env.PATH ?? '',
    ...testSettings(url, {
      HELIOGRAPH_MODE: 'production',
      HELIOGRAPH_WEBHOOK_ALLOW_HTTP: 'false',
      HELIOGRAPH_UPSTREAM_GRAPH_URL: 'https://graph.facebook.com',
      HELIOGRAPH_UPSTREAM_APP_SECRETS: randomBytes(16).toString('hex'),
      HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: randomBytes(16).toString('hex'),
      HELIOGRAPH_ENCRYPTION_KEYS: `test:${randomBytes(32).toString('base64')}`,
      HELIOGRAPH_PORTAL_SECOND_FACTOR: 'optional',
    }),
  };
  const main = new URL('../../../src/main.ts', import.meta.url).pathname;
  let said = '';
  try {
    said = execFileSync(process.execPath, [main, 'doctor', '--json'], { env, encoding: 'utf8' });
  } catch (error) {
    // The rest of the installation is not there.
    said = (error as { stdout: string }).stdout;
  }
  const { checks } = JSON.parse(said) as { checks: { name: string; status: string; detail: string }[] };
  expect(
    checks.flatMap(({ name, status, detail }) => (name === 'safety' ? [`${status} ${detail}`] : [])),
  ).toEqual([
    expect.stringMatching(/^warn .*second factor/),
    expect.stringMatching(/^warn URLs .*never expire/),
    'warn 1 tenants have no quota for the bytes that are uploaded per day',
  ]);
});
