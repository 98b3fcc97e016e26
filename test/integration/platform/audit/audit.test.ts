import { expect, test } from 'vitest';
import { insertTenant, saveWaba } from '../../../../src/features/accounts/accounts.ts';
import {
  type AuditEntry,
  listAudit,
  recordAudit,
  recordChange,
  SYSTEM,
} from '../../../../src/platform/audit/audit.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { testDatabase } from '../../../support/test-database.ts';

const ENTRY: AuditEntry = {
  tenantId: null,
  wabaId: null,
  actor: 'ops@example.com',
  action: 'tenant.created',
  target: 'tenant 1',
  detail: {},
  requestId: 'req-1',
  ip: '192.0.2.1',
};

test('an audit entry can be neither changed nor deleted', async () => {
  const { database } = await testDatabase();
  await recordAudit(database, ENTRY);
  for (const statement of [
    `update audit_log set actor = 'somebody else'`,
    'delete from audit_log',
    'truncate audit_log',
  ]) {
    await expect(execute(database, statement)).rejects.toThrow('append-only');
  }
  expect(await listAudit({ database }, {})).toMatchObject([ENTRY]);
});

test('an entry is undone together with the change that it speaks of', async () => {
  const { database } = await testDatabase();
  const change = database.transaction(async (trx) => {
    await recordAudit(trx, ENTRY);
    throw new Error('the change failed');
  });
  await expect(change).rejects.toThrow('the change failed');
  expect(await listAudit({ database }, {})).toEqual([]);
});

test('a tenant reads the entries of its own WABAs, a WABA its own, an operator all', async () => {
  const { database } = await testDatabase();
  const [first, second] = [await insertTenant(database, 'First'), await insertTenant(database, 'Second')];
  await saveWaba(database, first, { wabaId: '101', accessTokenSealed: null });
  await saveWaba(database, first, { wabaId: '102', accessTokenSealed: null });
  await saveWaba(database, second, { wabaId: '201', accessTokenSealed: null });
  for (const wabaId of ['101', '102', '201']) {
    await recordChange(database, SYSTEM, { wabaId, action: 'endpoint.paused', target: `of ${wabaId}` });
  }
  await recordAudit(database, { ...ENTRY, tenantId: second });
  const targets = async (owner: Parameters<typeof listAudit>[1]) =>
    (await listAudit({ database }, owner)).map(({ target }) => target);
  expect(await targets({ tenantId: first })).toEqual(['of 102', 'of 101']);
  expect(await targets({ wabaId: '101' })).toEqual(['of 101']);
  expect(await targets({ tenantId: second, wabaId: '201' })).toEqual(['tenant 1', 'of 201']);
  expect(await targets({ tenantId: second, wabaId: '101' })).toEqual(['tenant 1']);
  expect(await targets({})).toEqual(['tenant 1', 'of 201', 'of 102', 'of 101']);
});

test('a tenant does not read where operators work from, an operator does', async () => {
  const { database } = await testDatabase();
  const tenantId = await insertTenant(database, 'First');
  await saveWaba(database, tenantId, { wabaId: '101', accessTokenSealed: null });
  for (const actor of ['ops@example.com', 'ann@example.com', 'API key 1']) {
    const byOperator = actor === 'ops@example.com';
    await recordAudit(database, { ...ENTRY, actor, byOperator, wabaId: '101' });
    await recordAudit(database, { ...ENTRY, actor, byOperator, tenantId });
  }
  const ips = async (owner: Parameters<typeof listAudit>[1]) =>
    (await listAudit({ database }, owner)).map(({ ip }) => ip);
  const ip = ENTRY.ip;
  expect(await ips({ tenantId, wabaId: '101' })).toEqual([ip, ip, ip, ip, null, null]);
  expect(await ips({ tenantId })).toEqual([ip, ip, ip, ip, null, null]);
  expect(await ips({ wabaId: '101' })).toEqual([ip, ip, null]);
  expect(await ips({})).toEqual([ip, ip, ip, ip, ip, ip]);
});

test('entries of a WABA and of its tenant are one list, paged and narrowed down together', async () => {
  const { database } = await testDatabase();
  const tenantId = await insertTenant(database, 'First');
  await saveWaba(database, tenantId, { wabaId: '101', accessTokenSealed: null });
  for (let n = 1; n <= 6; n += 1) {
    const wabaId = n % 2 === 0 ? '101' : null;
    const action = n <= 4 ? 'key.created' : 'key.revoked';
    await recordAudit(database, { ...ENTRY, tenantId, wabaId, action, target: `key ${n}` });
  }
  const page = async (filter: Parameters<typeof listAudit>[2]) =>
    await listAudit({ database }, { tenantId, wabaId: '101' }, filter);
  const first = await page({ limit: 3 });
  const second = await page({ limit: 3, beforeId: first.at(-1)?.id ?? null });
  const targets = [...first, ...second].map(({ target }) => target);
  expect(targets).toEqual(['key 6', 'key 5', 'key 4', 'key 3', 'key 2', 'key 1']);
  const created = await page({ action: 'key.created', limit: 2 });
  expect(created.map(({ target }) => target)).toEqual(['key 4', 'key 3']);
});

test('the list is paged by id and narrowed down by action and actor', async () => {
  const { database } = await testDatabase();
  for (let n = 1; n <= 5; n += 1) {
    const action = n % 2 === 0 ? 'key.created' : 'key.revoked';
    await recordAudit(database, { ...ENTRY, action, actor: `user${n}@example.com`, target: `key ${n}` });
  }
  const page = async (filter: Parameters<typeof listAudit>[2]) =>
    (await listAudit({ database }, {}, filter)).map(({ target }) => target);
  expect(await page({ limit: 2 })).toEqual(['key 5', 'key 4']);
  const [, last] = await listAudit({ database }, {}, { limit: 2 });
  expect(await page({ limit: 2, beforeId: last?.id ?? null })).toEqual(['key 3', 'key 2']);
  expect(await page({ action: 'key.created' })).toEqual(['key 4', 'key 2']);
  expect(await page({ action: 'key.created', actor: 'user2@example.com' })).toEqual(['key 2']);
  await expect(page({ actor: 'a\u0000' })).rejects.toMatchObject({ code: 'invalid_value' });
  await expect(page({ beforeId: '1 or 1=1' })).rejects.toMatchObject({ code: 'invalid_value' });
});

test('text from outside never keeps an entry from being written', async () => {
  const { database } = await testDatabase();
  const hostile = `a\u0000\ud800${'x'.repeat(10_000)}`;
  await recordAudit(database, { ...ENTRY, actor: hostile, target: hostile, detail: { name: hostile } });
  const [entry] = await listAudit({ database }, {});
  expect(entry?.target).toHaveLength(500);
  expect(entry?.detail.name).toBe(entry?.target);
});
