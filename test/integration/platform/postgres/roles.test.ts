import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { policyDefaults, setTenantPolicy } from '../../../../src/features/accounts/tenant-policies.ts';
import { insertBodies } from '../../../../src/ingest/intake/store-bodies.ts';
import { dropDay } from '../../../../src/ops/erasures/retention/expired-days.ts';
import { expireAuditEntries } from '../../../../src/ops/erasures/retention/tenant-retention.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { verifyAudit } from '../../../../src/platform/audit/audit-chain.ts';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import { openDatabase } from '../../../../src/platform/postgres/database.ts';
import { migrate } from '../../../../src/platform/postgres/migrate.ts';
import { ensurePartitions } from '../../../../src/platform/postgres/partitions.ts';
import { readSchemaState } from '../../../../src/platform/postgres/schema-state.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { startOwnPostgres } from '../../../support/own-postgres.ts';
import { addEndpoint, seedFixtureAccounts } from '../../../support/test-accounts.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { fixtureBody } from '../../../support/upstream-fixtures.ts';
import { eventually, startReceiver } from '../../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../../support/worker-process.ts';

const ROLES = readFileSync(new URL('../../../../deploy/postgres/roles.sql', import.meta.url), 'utf8');
const WABA = '900000000000101';
const REFUSED = { code: '42501' };

/** A database whose schema the owner made, as the roles see it. */
async function installation() {
  const server = await startOwnPostgres();
  const opened = (user?: string) => {
    const url = new URL(server.url);
    if (user !== undefined) [url.username, url.password] = [user, 'of-a-test'];
    const database = openDatabase({ url: url.href, poolMax: 6, applicationName: 'roles' });
    onTestFinished(() => database.destroy());
    return { database, url: url.href };
  };
  const { database: superuser } = opened();
  await superuser.raw(ROLES);
  for (const role of ['owner', 'app', 'readonly'])
    await superuser.raw(`alter role heliograph_${role} password 'of-a-test'`);
  const owner = opened('heliograph_owner');
  await migrate(owner.database);
  await superuser.raw(ROLES);
  return { superuser, app: opened('heliograph_app'), readonly: opened('heliograph_readonly').database };
}

test('where one role did everything, its tables go to the owner, and it goes on with less until it is not used any more', async () => {
  const server = await startOwnPostgres();
  const opened = (user?: string) => {
    const url = new URL(server.url);
    if (user !== undefined) [url.username, url.password] = [user, 'of-a-test'];
    const database = openDatabase({ url: url.href, poolMax: 3, applicationName: 'roles' });
    onTestFinished(() => database.destroy());
    return database;
  };
  const superuser = opened();
  const [named] = await query<{ name: string }>(superuser, 'select current_database() as name');
  await superuser.raw(`create role one login password 'of-a-test'`);
  await superuser.raw(`alter database "${named?.name}" owner to one`);
  const one = opened('one');
  await migrate(one);
  await seedFixtureAccounts(one);
  const entry = `insert into audit_log (actor, action, target) values ('x', 'y', 'z')`;
  await one.raw(entry);

  await superuser.raw(ROLES);
  await superuser.raw(ROLES);
  for (const role of ['owner', 'app']) {
    await superuser.raw(`alter role heliograph_${role} password 'of-a-test'`);
  }
  const app = opened('heliograph_app');
  for (const database of [one, app]) {
    await database.raw(entry);
    await database.raw(`update tenants set business_name = 'other'`);
    expect(await ensurePartitions(database)).toEqual([]);
    for (const statement of [
      'alter table audit_log disable trigger all',
      'delete from audit_log',
      'delete from audit_chain',
      'drop table tenants',
    ]) {
      await expect(database.raw(statement), statement).rejects.toMatchObject(REFUSED);
    }
  }
  await migrate(opened('heliograph_owner'));
  expect((await readSchemaState(app)).pending).toEqual([]);
  expect(await verifyAudit(app, null)).toMatchObject({ findings: [], entries: 3 });
  await superuser.raw('drop owned by one; drop role one');
});

test('the reading role reads nothing that is not listed: no new table, and nothing that it could read before', async () => {
  const { superuser, readonly } = await installation();
  // As early versions of the file left it.
  await superuser.raw(
    `alter default privileges for role heliograph_owner in schema public grant select on tables to heliograph_readonly;
     grant select on all tables in schema public to heliograph_readonly`,
  );
  await superuser.raw(ROLES);
  await superuser.raw('set role heliograph_owner; create table of_a_later_version (secret text); reset role');
  await superuser.raw(ROLES);
  for (const statement of [
    'select * from of_a_later_version',
    'select * from user_totp',
    'select * from media',
  ])
    await expect(readonly.raw(statement), statement).rejects.toMatchObject(REFUSED);
  const readable = await query<{ name: string }>(
    superuser,
    `select c.relname || '.' || a.attname as name
       from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
        and has_column_privilege('heliograph_readonly', c.oid, a.attnum, 'select')`,
  );
  const secrets = readable.filter(({ name }) =>
    /sealed|object_key|secret|password|token_hash|key_hash|code_hash|salt|recovery|upstream_url/.test(name),
  );
  expect(secrets).toEqual([]);
  expect(readable.length).toBeGreaterThan(150);
});

test('the application works as a role that owns nothing; another one reads; neither can do more', async () => {
  const { superuser, app, readonly } = await installation();
  const { database } = app;
  await seedFixtureAccounts(database);
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  await addEndpoint(database, WABA, `${receiver.url}/hook`);
  expect((await readSchemaState(database)).pending).toEqual([]);
  await superuser.raw(`select change_partition('drop', 'events', current_date + 3)`);
  const worker = startWorkerProcess(testSettings(app.url));
  onTestFinished(() => worker.stop());
  await worker.ready();
  await insertBodies(database, [fixtureBody('in_text')]);
  await eventually('delivered', () => receiver.received.length, { is: 1 });
  expect(worker.output()).not.toMatch(/permission denied|must be owner/);

  expect(await ensurePartitions(database)).toEqual([]);
  const made = await query(
    database,
    `select from pg_class where relname = to_char(current_date + 3, '"events_"YYYYMMDD')`,
  );
  expect(made).toHaveLength(1);
  const [day] = await query<{ day: string }>(database, 'select current_date + 5 as day');
  expect(await dropDay(database, 'attempts', day?.day ?? '')).toBe('dropped');

  for (const statement of [
    'create table other (n integer)',
    'drop table tenants',
    'alter table tenants add column other text',
    `insert into schema_migrations (name, batch, migration_time) values ('9999-other', 9, now())`,
    'set role heliograph_owner',
  ]) {
    await expect(database.raw(statement), statement).rejects.toMatchObject(REFUSED);
  }
  await expect(
    database.raw(`select change_partition('drop', 'tenants', current_date)`),
  ).rejects.toMatchObject({
    code: '22023',
  });

  const entry = `(tenant_id, waba_id, actor, action, target) values (1, null, 'x', 'y', 'z')`;
  await superuser.raw(
    `insert into audit_log (at, tenant_id, actor, action, target) values (now() - interval '31 days', 2, 'x', 'y', 'z')`,
  );
  await setTenantPolicy(
    { database, actor: SYSTEM, defaults: policyDefaults(loadConfig(testSettings(app.url))) },
    '2',
    { auditDays: 30 },
  );
  await database.raw(`insert into audit_log ${entry}`);
  await expireAuditEntries({ database });
  for (const statement of [
    'truncate audit_log',
    'delete from audit_log',
    `update audit_log set actor = 'x'`,
    'alter table audit_log disable trigger all',
    'alter table audit_log disable trigger audit_log_chained',
    'drop trigger audit_log_chained on audit_log',
    'alter table audit_log rename to audit_log_before',
    'drop table audit_log cascade',
    'set session_replication_role = replica',
    `insert into audit_log (at, actor, action, target) values (now() - interval '1 day', 'x', 'y', 'z')`,
    `insert into audit_log (id, actor, action, target) overriding system value values (1, 'x', 'y', 'z')`,
    `insert into audit_chain (position, entry_id, hash) values (99, 99, '')`,
    'delete from audit_chain',
    'update audit_chain set expired_by = 1',
    `update audit_chain set hash = ''`,
    'truncate audit_chain',
    `create or replace function chain_audit_entry() returns trigger language plpgsql as 'begin return null; end'`,
    'create table audit_log_20261101 partition of audit_log default',
  ]) {
    await expect(database.raw(statement), statement).rejects.toMatchObject(REFUSED);
  }
  await expect(
    database.raw(`select change_partition('drop', 'audit_log', current_date)`),
  ).rejects.toMatchObject({ code: '22023' });
  await expect(database.raw('select chain_audit_entry()')).rejects.toMatchObject({ code: '0A000' });
  const verdict = await verifyAudit(database, null);
  expect(verdict).toMatchObject({ findings: [], expired: 1 });
  expect(verdict.entries).toBeGreaterThan(0);

  expect(await query(readonly, 'select event_type from events')).toHaveLength(1);
  await query(readonly, 'select message_id, state, file_name from media');
  for (const statement of [
    `update tenants set business_name = 'x'`,
    'select * from users',
    'select * from user_totp',
    'select * from recovery_codes',
    'select * from installation_secrets',
    'select * from mails',
    'select * from memberships',
    // The address of a file is all that it takes to read it.
    'select object_key from media',
    'select body from events',
    'select url from webhook_endpoints',
    'select operations_url from wabas',
    'select expire_audit_entries(1, 10)',
    'select * from api_keys',
    `select change_partition('drop', 'events', current_date)`,
    'create table other (n integer)',
    'create temporary table other (n integer)',
  ]) {
    await expect(readonly.raw(statement), statement).rejects.toMatchObject(REFUSED);
  }
});
