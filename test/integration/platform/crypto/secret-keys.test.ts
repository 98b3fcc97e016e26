import { createPrivateKey } from 'node:crypto';
import { generate } from 'selfsigned';
import { expect, test } from 'vitest';
import { openEndpoint } from '../../../../src/engine/deliveries/attempt/endpoint-cache.ts';
import { loadEndpointSettings } from '../../../../src/engine/endpoint/endpoint-settings.ts';
import { publicKeyOf } from '../../../../src/engine/endpoint/webhook-signature.ts';
import { ACCESS_TOKEN } from '../../../../src/features/accounts/access-tokens.ts';
import { findWaba, saveWaba } from '../../../../src/features/accounts/accounts.ts';
import { saveNumberPin } from '../../../../src/features/accounts/number-pins.ts';
import { setClientCertificate } from '../../../../src/features/endpoints/endpoint-certificate.ts';
import { rotateSecret, rotateSigningKey } from '../../../../src/features/endpoints/endpoint-secrets.ts';
import { addEndpoint, endpointStatus, updateEndpoint } from '../../../../src/features/endpoints/endpoints.ts';
import { findMail, MAIL_CONTENT, queueMail } from '../../../../src/features/mail/mails.ts';
import { SETUP_TOKEN } from '../../../../src/features/setup-links/setup-link-store.ts';
import { TOTP_SECRET } from '../../../../src/features/users/second-factor.ts';
import {
  findOperationsUrl,
  OPERATIONS_SECRET,
  rotateOperationsSecret,
  setOperationsUrl,
} from '../../../../src/ops/alerts/operations-url.ts';
import { ERASURE_SUBJECT } from '../../../../src/ops/erasures/erasure-step.ts';
import { HOOK_SECRET } from '../../../../src/ops/feed/hook-store.ts';
import { putHook, rotateHookSecret } from '../../../../src/ops/feed/hooks.ts';
import { SEALED_COLUMNS } from '../../../../src/ops/secrets/sealed-columns.ts';
import {
  reencryptSecrets,
  reportUnreadableSecrets,
  secretStatus,
  unreadableSecrets,
} from '../../../../src/ops/secrets/secret-keys.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { openEventIdHash } from '../../../../src/platform/crypto/installation-secret.ts';
import { makeSecretBox, type SecretBox } from '../../../../src/platform/crypto/secret-box.ts';
import { makeAddressGuard } from '../../../../src/platform/http/outbound-url.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute, query, queryOnly } from '../../../../src/platform/postgres/sql.ts';
import { runAdmin } from '../../../support/admin-cli.ts';
import { seedFixtureAccounts } from '../../../support/test-accounts.ts';
import { testDatabase } from '../../../support/test-database.ts';
import { testSettings } from '../../../support/test-settings.ts';

const NUMBER = '800000000000111';
const WABA = '900000000000101';
const K1 = { id: 'k1', key: Buffer.alloc(32, 1) };
const K2 = { id: 'k2', key: Buffer.alloc(32, 2) };
const settingOf = (...keys: (typeof K1)[]) =>
  keys.map(({ id, key }) => `${id}:${key.toString('base64')}`).join(',');

/** A secret of every kind, as a process with k1 alone stores them. */
async function filled() {
  const { database, url } = await testDatabase();
  const tenants = await seedFixtureAccounts(database);
  const urlRules = {
    allowHttp: false,
    guard: makeAddressGuard({ allowCidrs: [] }),
    resolve: async () => ['93.184.215.14'],
  };
  const toolsWith = (secretBox: SecretBox) => ({
    database,
    secretBox,
    urlRules,
    maxTimeoutMs: 15_000,
    actor: SYSTEM,
  });
  const old = toolsWith(makeSecretBox([K1]));
  const customHeaders = { Authorization: 'Bearer s3cret' };
  const { id, secret: before } = await addEndpoint(old, WABA, {
    url: 'https://shop.example/a',
    customHeaders,
    asymmetricSignature: 'ed25519',
    format: 'meta',
    appSecret: 'the app secret of a test',
  });
  const { secret } = await rotateSecret(old, WABA, id, {});
  await rotateSigningKey(old, WABA, id, {});
  const client = await generate([{ name: 'commonName', value: 'client' }], { keySize: 2048 });
  await setClientCertificate(old, WABA, id, { certificate: client.cert, privateKey: client.private });
  const { publicKeys } = await endpointStatus(old, WABA, id);
  const operations = await setOperationsUrl(old, WABA, 'https://ops.example/');
  await putHook(old, 'crm', { url: 'https://crm.example/' });
  const hook = await rotateHookSecret(old, 'crm', 24);
  const accessTokenSealed = old.secretBox.seal('token', ACCESS_TOKEN.place(WABA));
  await saveWaba(database, tenants.get(WABA) ?? '', { wabaId: WABA, accessTokenSealed });
  await openEventIdHash(old)('wamid.1');
  await execute(
    database,
    `insert into erasures (id, kind, subject_id, requested_by, subject_sealed) overriding system value
     values (1, 'user', '1', 'test', :sealed)`,
    { sealed: old.secretBox.seal('{}', ERASURE_SUBJECT.place('1')) },
  );
  await execute(
    database,
    `insert into users (id, email, name) overriding system value values (1, 'a@store.example', 'Asha')`,
  );
  await execute(
    database,
    'insert into user_totp (user_id, secret_sealed, last_step) values (1, :sealed, 0)',
    { sealed: old.secretBox.seal('totp', TOTP_SECRET.place('1')) },
  );
  await saveNumberPin(old, NUMBER, '271828');
  await execute(
    database,
    `insert into setup_links (id, token_hash, tenant_id, mode, connections, success_url, failure_url, expires_at, token_sealed)
     overriding system value
     values (1, '\\x01', :tenant, 'signup', '{cloud}', 'https://crm.example/', 'https://crm.example/', now(), :sealed)`,
    { tenant: tenants.get(WABA) ?? '', sealed: old.secretBox.seal('token', SETUP_TOKEN.place('1')) },
  );
  const mail = { kind: 'invitation' as const, userId: null, recipient: 'a@store.example' };
  const mailer = { secretBox: old.secretBox, publicUrl: 'https://gateway.example' };
  const mailId = await database.transaction((trx) =>
    queueMail(trx, mailer, { ...mail, subject: 'one', text: 'link', html: 'link' }),
  );
  const both = toolsWith(makeSecretBox([K2, K1]));
  return {
    database,
    url,
    old,
    both,
    toolsWith,
    id,
    mailId,
    expected: {
      secret,
      before,
      operations: operations.secret,
      hook: hook.secret,
      publicKeys: publicKeys?.map(({ publicKey }) => publicKey),
      clientKey: createPrivateKey(client.private).export({ type: 'pkcs8', format: 'pem' }),
    },
  };
}

/** What the senders open, with a box. */
async function openAll(database: Database, secretBox: SecretBox, id: string) {
  const [settings] = await loadEndpointSettings(database, [id]);
  if (settings === undefined) throw new Error('the endpoint is gone');
  const defaults = { timeoutMs: 1_000, retryScheduleMs: [1_000], workflows: 'auto' as const };
  const endpoint = openEndpoint(settings, { secretBox, defaults });
  const sealedToken = (await findWaba(database, WABA))?.accessTokenSealed ?? '';
  const hook = await queryOnly<{ sealed: string }>(
    database,
    'select secret_sealed as sealed from operations_hooks',
    {},
  );
  const operations = (await findOperationsUrl(database, WABA))?.secretSealed ?? '';
  return {
    secret: endpoint.secrets[0]?.secret,
    before: endpoint.secrets[1]?.secret,
    publicKeys: endpoint.signingKeys.map(({ secret }) => publicKeyOf(secret)),
    clientKey: endpoint.terms.clientCertificate?.privateKey,
    headers: endpoint.customHeaders,
    appSecret: endpoint.appSecret,
    token: secretBox.open(sealedToken, ACCESS_TOKEN.place(WABA)),
    operations: secretBox.open(operations, OPERATIONS_SECRET.place(WABA)),
    hook: secretBox.open(hook.sealed, HOOK_SECRET.place('crm')),
  };
}

/** Tables of which a row, whatever its columns, holds a text that a key sealed. */
async function tablesWith(database: Database, keyId: string): Promise<string[]> {
  const tables = await query<{ name: string }>(
    database,
    `select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p') and n.nspname = 'public' order by 1`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await query(database, `select 1 from ${name} t where t::text like '%v1:${keyId}:%' limit 1`);
    if (rows.length > 0) found.push(name);
  }
  return found;
}

test('every sealed column is known to reencryption', async () => {
  const { database } = await testDatabase();
  const columns = await query<{ name: string }>(
    database,
    `select table_name || '.' || column_name as name from information_schema.columns
      where table_schema = 'public' and column_name like '%sealed%' order by 1`,
  );
  const known = SEALED_COLUMNS.map(({ table, column }) => `${table}.${column}`).sort();
  expect(columns.map(({ name }) => name).sort()).toEqual(known);
});

test('after k2,k1 and reencrypt nothing needs k1, and k2 alone opens everything', async () => {
  const { database, both, toolsWith, id, mailId, expected } = await filled();
  const present = await secretStatus(both);
  expect(present).toMatchObject({ currentKeyId: 'k2', retirableKeyIds: [] });
  expect(present.stored.map(({ keyId, count, isKnown }) => [keyId, count, isKnown])).toEqual(
    SEALED_COLUMNS.map(() => ['k1', 1, true]),
  );
  const only = toolsWith(makeSecretBox([K2]));
  expect(await unreadableSecrets(only)).toHaveLength(SEALED_COLUMNS.length);

  expect(await reencryptSecrets(both)).toEqual({
    keyId: 'k2',
    reencrypted: SEALED_COLUMNS.length,
    remaining: [],
  });
  expect(await reencryptSecrets(both)).toEqual({ keyId: 'k2', reencrypted: 0, remaining: [] });
  expect((await secretStatus(both)).retirableKeyIds).toEqual(['k1']);
  expect(await tablesWith(database, 'k1')).toEqual([]);
  expect(await tablesWith(database, 'k2')).toEqual([
    'erasures',
    'installation_secrets',
    'mails',
    'operations_hooks',
    'phone_numbers',
    'setup_links',
    'user_totp',
    'wabas',
    'webhook_endpoints',
  ]);
  expect(await unreadableSecrets(only)).toEqual([]);
  expect(await openAll(database, only.secretBox, id)).toEqual({
    ...expected,
    headers: { Authorization: 'Bearer s3cret' },
    token: 'token',
    appSecret: 'the app secret of a test',
  });
  const sealed = (await findMail(database, mailId))?.contentSealed ?? '';
  expect(only.secretBox.open(sealed, MAIL_CONTENT.place(mailId))).toContain('link');
});

test('what changes meanwhile wins, and what an old process writes is found by another pass', async () => {
  const { database, old, both, toolsWith, id } = await filled();
  const news = { secret: '', operations: '' as string | null };
  let calls = 0;
  let meanwhile: Promise<unknown> = Promise.resolve();
  const result = await reencryptSecrets(both, () => {
    calls += 1;
    if (calls > 1) return;
    // The old process: it copies the present secret to the previous one and seals with k1.
    meanwhile = (async () => {
      news.secret = (
        await rotateSecret({ ...both, secretBox: makeSecretBox([K1, K2]) }, WABA, id, {})
      ).secret;
      await updateEndpoint(both, WABA, id, { customHeaders: { 'X-New': 'yes' } });
      news.operations = (await rotateOperationsSecret(old, WABA)).secret;
    })();
  });
  await meanwhile;
  // What was committed after the last look is for another call.
  if (result.remaining.length > 0 || (await tablesWith(database, 'k1')).length > 0)
    await reencryptSecrets(both);
  expect(await tablesWith(database, 'k1')).toEqual([]);
  const { secretBox } = toolsWith(makeSecretBox([K2]));
  expect(await openAll(database, secretBox, id)).toMatchObject({
    ...news,
    token: 'token',
    appSecret: 'the app secret of a test',
    headers: { Authorization: 'Bearer s3cret', 'X-New': 'yes' },
  });
});

test('a missing key and another key under the same id are said at start, and reencrypt leaves their secrets', async () => {
  const { database, toolsWith } = await filled();
  const logged: unknown[] = [];
  const logger = {
    error: (...line: unknown[]) => logged.push(line),
    warn: (...line: unknown[]) => logged.push(line),
  };
  await reportUnreadableSecrets(toolsWith(makeSecretBox([K2, K1])), logger);
  expect(logged).toEqual([]);
  for (const keys of [[K2], [K2, { id: 'k1', key: Buffer.alloc(32, 9) }]]) {
    logged.length = 0;
    const tools = toolsWith(makeSecretBox(keys));
    await reportUnreadableSecrets(tools, logger);
    expect(JSON.stringify(logged)).toContain('HELIOGRAPH_ENCRYPTION_KEYS');
    expect(JSON.stringify(logged)).toContain('"keyId":"k1"');
    const { reencrypted, remaining } = await reencryptSecrets(tools);
    expect([reencrypted, remaining.length]).toEqual([0, SEALED_COLUMNS.length]);
  }
  expect(await tablesWith(database, 'k1')).toEqual([
    'erasures',
    'installation_secrets',
    'mails',
    'operations_hooks',
    'phone_numbers',
    'setup_links',
    'user_totp',
    'wabas',
    'webhook_endpoints',
  ]);
});

test('admin secrets status and reencrypt say what keys are needed for', async () => {
  const { url } = await filled();
  const admin = async (keys: string, ...args: string[]) =>
    await runAdmin(testSettings(url, { HELIOGRAPH_ENCRYPTION_KEYS: keys }), ['secrets', ...args]);
  const missing = await admin(settingOf(K2), 'status');
  expect([missing.exitCode, missing.stdout.includes('access_token_sealed')]).toEqual([1, true]);
  const done = await admin(settingOf(K2, K1), 'reencrypt', '--json');
  expect(done.stderr).toContain('so far');
  expect(JSON.parse(done.stdout)).toEqual({ keyId: 'k2', reencrypted: SEALED_COLUMNS.length, remaining: [] });
  const after = await admin(settingOf(K2), 'status', '--json');
  expect([after.exitCode, JSON.parse(after.stdout).unreadable]).toEqual([0, []]);
});
