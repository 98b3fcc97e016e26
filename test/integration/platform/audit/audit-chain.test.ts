import { createHash } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { recordAudit, redactAudit } from '../../../../src/platform/audit/audit.ts';
import { auditAnchor, exportAudit, verifyAudit } from '../../../../src/platform/audit/audit-chain.ts';
import { type Database, openDatabase } from '../../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { housekeepingSteps, runStep } from '../../../../src/worker/housekeeping.ts';
import { runAdmin } from '../../../support/admin-cli.ts';
import { silentLogger } from '../../../support/silent-logger.ts';
import { testDatabase } from '../../../support/test-database.ts';
import { testSettings } from '../../../support/test-settings.ts';

const ENTRY = {
  tenantId: null,
  wabaId: null,
  actor: 'ops@example.com',
  action: 'tenant.created',
  detail: { note: 'grüße "👋"', count: 2, none: null },
  requestId: 'req-1',
  ip: '192.0.2.1',
};

async function filled(count = 5) {
  const { database, url } = await testDatabase();
  for (let n = 1; n <= count; n += 1) await recordAudit(database, { ...ENTRY, target: `tenant ${n}` });
  return { database, url };
}

/** As one who owns the tables and switches off what protects them. */
async function tamper(database: Database, statement: string): Promise<void> {
  await database.transaction(async (trx) => {
    await trx.raw(`set local session_replication_role = replica`);
    await trx.raw(statement);
  });
}

const kindsOf = async (database: Database, anchor: string | null = null) =>
  (await verifyAudit(database, anchor)).findings.map(({ kind, position, entryId }) => [
    kind,
    position,
    entryId,
  ]);

test('a log that nobody touched has no findings, whatever the time zone of the one who asks', async () => {
  const { database, url } = await filled();
  const verdict = await verifyAudit(database, null);
  expect(verdict).toMatchObject({ entries: 5, findings: [], last: { position: '5' } });
  expect(await auditAnchor(database)).toEqual(verdict.last);
  const elsewhere = new URL(url);
  const other = openDatabase({ url: elsewhere.href, poolMax: 1, applicationName: 'tz' });
  onTestFinished(() => other.destroy());
  await other.raw(`set timezone = 'Asia/Kathmandu'`);
  await recordAudit(other, { ...ENTRY, target: 'tenant 6' });
  expect((await verifyAudit(other, null)).findings).toEqual([]);
  expect((await verifyAudit(database, null)).findings).toEqual([]);
});

test.each([
  ['a changed text', `update audit_log set target = 'tenant 9' where id = 3`, [['changed', '3', '3']]],
  [
    'a changed time',
    `update audit_log set at = at - interval '1 hour' where id = 2`,
    [['changed', '2', '2']],
  ],
  ['a removed entry', `delete from audit_log where id = 3`, [['removed', '3', '3']]],
  [
    'an entry and its link removed',
    `delete from audit_chain where entry_id = 3; delete from audit_log where id = 3`,
    [['gap', '4', null]],
  ],
  [
    'an entry put in',
    `insert into audit_log (actor, action, target) values ('x', 'y', 'z')`,
    [['not_chained', null, '6']],
  ],
  [
    'two entries that changed places',
    `update audit_chain set entry_id = 9 where entry_id = 2; update audit_chain set entry_id = 2 where entry_id = 3;
     update audit_chain set entry_id = 3 where entry_id = 9`,
    [
      ['changed', '2', '3'],
      ['changed', '3', '2'],
    ],
  ],
])('%s is found', async (_, statement, findings) => {
  const { database } = await filled();
  await tamper(database, statement);
  expect(await kindsOf(database)).toEqual(findings);
});

test('an end that was cut off, and a chain written anew, are found by an anchor from before', async () => {
  const { database } = await filled();
  const { position, hash } = await auditAnchor(database);
  const anchor = `${position}:${hash}`;
  expect(await kindsOf(database, anchor)).toEqual([]);
  await tamper(database, 'delete from audit_chain where entry_id > 3; delete from audit_log where id > 3');
  expect(await kindsOf(database)).toEqual([]);
  expect(await kindsOf(database, anchor)).toEqual([['cut_off', '3', null]]);
  for (const n of [4, 5]) await recordAudit(database, { ...ENTRY, target: `other ${n}` });
  expect(await kindsOf(database, anchor)).toEqual([['anchor_differs', '5', expect.any(String)]]);
  await expect(verifyAudit(database, 'x:y')).rejects.toMatchObject({ code: 'invalid_value' });
});

test('entries of transactions side by side are one chain; what is rolled back is not in it', async () => {
  const { database } = await filled(0);
  await Promise.allSettled(
    Array.from({ length: 40 }, async (_, n) =>
      database.transaction(async (trx) => {
        await recordAudit(trx, { ...ENTRY, target: `a ${n}` });
        await trx.raw('select pg_sleep(random() * 0.02)');
        await recordAudit(trx, { ...ENTRY, target: `b ${n}` });
        if (n % 4 === 0) throw new Error('undone');
      }),
    ),
  );
  expect(await verifyAudit(database, null)).toMatchObject({ entries: 60, findings: [] });
});

test('an open transaction with an entry keeps no other one waiting', async () => {
  const { database } = await filled(0);
  await database.transaction(async (trx) => {
    await recordAudit(trx, { ...ENTRY, target: 'long' });
    await recordAudit(database, { ...ENTRY, target: 'meanwhile' });
    expect(await verifyAudit(database, null)).toMatchObject({ entries: 1 });
  });
  expect(await verifyAudit(database, null)).toMatchObject({ entries: 2, findings: [] });
});

test('an export can be verified line by line without us', async () => {
  const { database, url } = await filled();
  const lines: string[] = [];
  for await (const line of exportAudit(database)) lines.push(line);
  expect(lines.map((line) => JSON.parse(line).entry)).toMatchObject(
    [1, 2, 3, 4, 5].map((n) => ({ ...ENTRY, target: `tenant ${n}` })),
  );
  let before = '';
  for (const line of lines) {
    const { previousHash, hash } = JSON.parse(line);
    const entry = line.slice(line.indexOf('"entry":') + '"entry":'.length, line.lastIndexOf('}'));
    const hashed = createHash('sha256').update(Buffer.from(previousHash, 'hex')).update(entry);
    expect([previousHash, hashed.digest('hex')]).toEqual([before, hash]);
    before = hash;
  }
  const printed = await runAdmin(testSettings(url), ['audit', 'export']);
  expect([printed.stdout, printed.exitCode]).toEqual([lines.join(''), 0]);
});

test('the command tells what is wrong and where, and exits with 1', async () => {
  const { database, url } = await filled();
  const good = await runAdmin(testSettings(url), ['audit', 'verify']);
  expect([good.exitCode, good.stdout]).toEqual([
    0,
    expect.stringMatching(/entries +5\nexpired +0\nredacted +0\nanchor +5:[0-9a-f]{64}\nfindings +none/),
  ]);
  await tamper(database, `update audit_log set actor = 'somebody else' where id = 4`);
  const bad = await runAdmin(testSettings(url), ['audit', 'verify']);
  expect([bad.exitCode, bad.stdout]).toEqual([1, expect.stringContaining('position 4, entry 4: the entry')]);
});

test('the log stream gets the end of the chain, once a day', async () => {
  const { database } = await filled();
  const lines: { about: object; message: string }[] = [];
  const logger = { info: (about: object, message: string) => lines.push({ about, message }) };
  const tools = {
    database,
    logger: logger as never,
    objectStore: null as never,
    retentionDays: null as never,
  };
  const step = housekeepingSteps(tools).find(({ name }) => name === 'audit anchor');
  if (step === undefined) throw new Error('there is no such step');
  expect(await runStep(tools, step)).toBe(true);
  expect(await runStep(tools, step)).toBe(false);
  const { position, hash } = await auditAnchor(database);
  expect(lines).toEqual([
    { about: { security: true, anchor: `${position}:${hash}` }, message: 'the audit log ends here' },
  ]);
  const [row] = (
    await database.raw(`select next_at > now() + interval '23 hours' as later from housekeeping_steps`)
  ).rows;
  expect(row).toEqual({ later: true });
});

/** What an early version wrote beside each dropped delivery: an upstream id, which holds a phone number. */
async function addEarlyEntries(database: Database, wabaId: string, count: number): Promise<void> {
  await execute(
    database,
    `insert into audit_log (waba_id, actor, action, target, detail)
     select :wabaId, 'ops@example.com', 'delivery.dropped', 'delivery dlv_' || n, jsonb_build_object('eventId', 'wamid.' || n)
       from generate_series(1, :count) as n`,
    { wabaId, count },
  );
}

const withIds = async (database: Database) =>
  await query(database, `select id from audit_log where detail -> 'eventId' is not null`);

test('housekeeping takes ids of events out of early entries of all WABAs, and the log can still be verified', async () => {
  const { database, url } = await filled();
  await addEarlyEntries(database, '900000000000101', 620);
  await addEarlyEntries(database, '900000000000109', 2);
  const before = await auditAnchor(database);
  const tools = {
    database,
    logger: silentLogger,
    objectStore: null as never,
    retentionDays: null as never,
  };
  const step = housekeepingSteps(tools).find(({ name }) => name === 'audit ids');
  if (step === undefined) throw new Error('there is no such step');
  // An erasure of the same WABA at the same time: each entry is noted once.
  const other = openDatabase({ url, poolMax: 1, applicationName: 'erasure' });
  onTestFinished(() => other.destroy());
  await Promise.all([runStep(tools, step), redactAudit(other, '900000000000101')]);
  await step.run(new AbortController().signal);
  expect(await withIds(database)).toEqual([]);
  const { findings, redacted } = await verifyAudit(database, `${before.position}:${before.hash}`);
  expect([findings, redacted]).toEqual([[], 622]);
  const noted = await query(
    database,
    `select distinct target from audit_log where action = 'audit.redacted'`,
  );
  expect(noted).toHaveLength(622);
});
