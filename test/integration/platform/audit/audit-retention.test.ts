import { expect, test } from 'vitest';
import { policyDefaults, setTenantPolicy } from '../../../../src/features/accounts/tenant-policies.ts';
import { expireAuditEntries } from '../../../../src/ops/erasures/retention/tenant-retention.ts';
import { redactAudit, SYSTEM } from '../../../../src/platform/audit/audit.ts';
import {
  auditAnchor,
  exportAudit,
  verifyAudit,
  verifyChain,
} from '../../../../src/platform/audit/audit-chain.ts';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { buffersTouched } from '../../../support/buffers-touched.ts';
import { seedFixtureAccounts } from '../../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../../support/test-database.ts';
import { testSettings } from '../../../support/test-settings.ts';

const WABA = '900000000000101';
const OTHER_WABA = '900000000000202';

/** Two tenants, one of which keeps entries for 40 days; entries of both and of nobody, `ages` days old. */
async function filled(ages: readonly number[], copies = 1) {
  const { database, url } = await testWorkerDatabase();
  const tenants = await seedFixtureAccounts(database);
  const own = tenants.get(WABA) ?? '';
  const other = tenants.get(OTHER_WABA) ?? '';
  const tools = { database, actor: SYSTEM, defaults: policyDefaults(loadConfig(testSettings(url))) };
  for (const days of ages) {
    for (const tenant of [own, other, null]) await addEntry(database, tenant, days, copies);
  }
  await setTenantPolicy(tools, own, { auditDays: 40 });
  return { database, own, other, tools };
}

async function addEntry(
  database: Database,
  tenantId: string | null,
  days: number,
  copies = 1,
): Promise<void> {
  await query(
    database,
    `insert into audit_log (at, tenant_id, actor, action, target)
     select now() - cast(:days as integer) * interval '1 day', cast(:tenantId as bigint), 'ops', 'x.changed', :target
       from generate_series(1, cast(:copies as integer))`,
    { days, tenantId, target: `${tenantId} ${days}`, copies },
  );
}

const targets = async (database: Database, tenantId: string | null) =>
  (
    await query<{ target: string }>(
      database,
      `select target from audit_log where tenant_id is not distinct from cast(:tenantId as bigint) and action = 'x.changed' order by id`,
      { tenantId },
    )
  ).map(({ target }) => target);

test('entries that their tenant keeps no longer go; those of others and of nobody stay; the chain still holds', async () => {
  const { database, own, other } = await filled([100, 50, 39, 1]);
  const { position, hash } = await auditAnchor(database);
  const before: string[] = [];
  for await (const line of exportAudit(database)) before.push(line);
  await expireAuditEntries({ database });
  expect(await targets(database, own)).toEqual([`${own} 39`, `${own} 1`]);
  expect(await targets(database, other)).toHaveLength(4);
  expect(await targets(database, null)).toHaveLength(4);
  expect(await verifyAudit(database, `${position}:${hash}`)).toMatchObject({
    entries: 14,
    expired: 2,
    findings: [],
  });
  const [noted] = await query<{ id: string; tenantId: string | null; target: string; detail: object }>(
    database,
    `select id, tenant_id as "tenantId", target, detail from audit_log where action = 'audit.expired'`,
  );
  expect(noted).toMatchObject({ tenantId: null, target: `tenant ${own}`, detail: { entries: 2 } });
  const lines: string[] = [];
  for await (const line of exportAudit(database)) lines.push(line);
  const gone = lines.map((line) => JSON.parse(line)).filter(({ entry }) => entry === null);
  expect(gone).toMatchObject([
    { position: 1, expiredBy: Number(noted?.id) },
    { position: 4, expiredBy: Number(noted?.id) },
  ]);
  // Of the others each line is as it was.
  expect(lines.slice(0, before.length).filter((line, at) => line !== before[at])).toHaveLength(2);
  await expireAuditEntries({ database });
  expect(await verifyAudit(database, null)).toMatchObject({ entries: 14, expired: 2 });
});

test('entries that expire while the chain is verified are no finding', async () => {
  const { database } = await filled([100], 800);
  let expired = false;
  const verifying: Database = {
    ...database,
    transaction: (run) =>
      database.transaction((trx) => {
        const raw: Database['raw'] = async (text, bindings) => {
          const result = await trx.raw(text, bindings);
          if (!expired && text.includes('audit_chain_after')) {
            expired = true;
            await expireAuditEntries({ database });
          }
          return result;
        };
        return run({ ...trx, raw });
      }),
  };
  expect((await verifyAudit(verifying, null)).findings).toEqual([]);
  const { findings, expired: gone } = await verifyAudit(database, null);
  expect(findings).toEqual([]);
  expect(gone).toBeGreaterThan(0);
});

test('a tenant without days of its own keeps its entries for ever, and nobody less than 30 days', async () => {
  const { database, own, tools } = await filled([100, 35, 29]);
  await setTenantPolicy(tools, own, { auditDays: null });
  await expireAuditEntries({ database });
  expect(await targets(database, own)).toHaveLength(3);
  await expect(setTenantPolicy(tools, own, { auditDays: 29 })).rejects.toThrow('30 to 36500 days');
  await query(database, 'update tenant_policies set audit_days = 1');
  await expireAuditEntries({ database });
  expect(await targets(database, own)).toEqual([`${own} 29`]);
});

const MARKED = `update audit_chain set expired_by = (select id from audit_log where action = 'audit.expired')`;

test('the tables refuse every other way to remove an entry, even to their owner, and what got past them is found', async () => {
  const { database } = await filled([100, 20, 1]);
  await expireAuditEntries({ database });
  expect((await verifyAudit(database, null)).findings).toEqual([]);
  for (const statement of [
    'delete from audit_log where id = 2',
    'delete from audit_log',
    'delete from audit_chain where position = 1',
    `update audit_chain set hash = '' where expired_by is not null`,
    'update audit_chain set expired_by = null where expired_by is not null',
    'update audit_chain set expired_by = 1 where expired_by is not null',
  ]) {
    await expect(database.raw(statement).then(() => statement)).rejects.toThrow('is append-only');
  }
  for (const [statement, ...kinds] of [
    [`${MARKED} where position = 2; delete from audit_log where id = 2`, 'expiry_differs'],
    ['update audit_chain set expired_by = null where position = 1', 'removed', 'expiry_differs'],
    [
      'update audit_chain set expired_by = 999 where position = 2; delete from audit_log where id = 2',
      'removed',
    ],
    [`delete from audit_log where action = 'audit.expired'`, 'removed', 'removed'],
  ]) {
    expect(await kindsAfter(database, [statement ?? '']), statement).toEqual(kinds);
  }
  // A note that is made up does not cover an entry that is young: position 7 is of one day ago.
  const note = `insert into audit_log (actor, action, target, detail)
    select 'system', 'audit.expired', 'tenant 1', jsonb_build_object('entries', 1, 'hash', encode(sha256(hash), 'hex'))
      from audit_chain where position = 7`;
  const passedOff = `update audit_chain set expired_by = (select max(id) from audit_log) where position = 7;
    delete from audit_log where id = 7`;
  expect(await kindsAfter(database, [passedOff], note)).toEqual(['expiry_differs']);
});

test('an entry loses nothing but the id of an event, and what got past the tables is found', async () => {
  const { database, own } = await filled([1]);
  await query(
    database,
    `insert into audit_log (tenant_id, waba_id, actor, action, target, detail)
     select cast(:own as bigint), :waba, 'ops', action, 'delivery dlv_1', '{"eventId": "wamid.x", "endpointId": "7"}'
       from unnest(array['delivery.dropped', 'x.other']) as a (action)`,
    { own, waba: WABA },
  );
  expect(await redactAudit(database, WABA)).toBe(1);
  expect(await redactAudit(database, WABA)).toBe(0);
  const details = await query<{ action: string; detail: object }>(
    database,
    'select action, detail from audit_log where waba_id = :waba order by id',
    { waba: WABA },
  );
  expect(details.map(({ detail }) => detail)).toEqual([
    { endpointId: '7', erased: 'eventId' },
    { eventId: 'wamid.x', endpointId: '7' },
  ]);
  expect(await verifyAudit(database, null)).toMatchObject({ findings: [], redacted: 1 });
  const dropped = `where action = 'delivery.dropped'`;
  const other = `where action = 'x.other'`;
  for (const statement of [
    `update audit_log set detail = '{}' ${dropped}`,
    `update audit_log set actor = 'x', detail = detail - 'eventId' || '{"erased": "eventId"}' ${dropped}`,
    `update audit_log set detail = detail - 'eventId' || '{"erased": "eventId"}' ${other}`,
    'update audit_chain set redacted_by = 1 where redacted_by is not null',
    'update audit_chain set redacted_by = null where redacted_by is not null',
  ]) {
    await expect(database.raw(statement), statement).rejects.toThrow('is append-only');
  }
  const linkOfOther = `where entry_id = (select id from audit_log ${other})`;
  for (const [statement, ...kinds] of [
    [`update audit_log set actor = 'x' ${dropped}`, 'redaction_differs'],
    [`update audit_chain set redacted_by = 999 ${linkOfOther}`, 'changed', 'changed'],
    [
      'update audit_chain set redacted_by = null where redacted_by is not null',
      'changed',
      'redaction_differs',
    ],
    [`delete from audit_log where action = 'audit.redacted'`, 'removed', 'changed'],
  ]) {
    expect(await kindsAfter(database, [statement ?? '']), statement).toEqual(kinds);
  }
});

class Undone extends Error {}

/** What is found after statements of one who switches off what protects the tables. */
async function kindsAfter(database: Database, statements: readonly string[], entry = ''): Promise<string[]> {
  let kinds: string[] = [];
  const changed = database.transaction(async (trx) => {
    if (entry !== '') await trx.raw(entry);
    await trx.raw('set constraints all immediate');
    await trx.raw('set local session_replication_role = replica');
    for (const statement of statements) await trx.raw(statement);
    kinds = (await verifyChain(trx, null)).findings.map(({ kind }) => kind);
    throw new Undone();
  });
  await expect(changed).rejects.toThrow(Undone);
  return kinds;
}

test('a turn without anything to do looks at one batch, however many entries there are', async () => {
  const { database, own } = await filled([1]);
  await query(
    database,
    `insert into audit_log (tenant_id, actor, action, target)
     select cast(:own as bigint), 'ops', 'x.changed', 'y' from generate_series(1, 20000)`,
    { own },
  );
  await database.raw('vacuum analyze audit_log');
  const touched = await buffersTouched(database, (explaining) =>
    expireAuditEntries({ database: explaining }),
  );
  expect(touched).toBeGreaterThan(0);
  expect(touched).toBeLessThan(1_500);
});
