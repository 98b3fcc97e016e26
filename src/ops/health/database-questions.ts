import { countPending, floorOf, oldestDueAt, oldestPendingAt } from '../../engine/deliveries/backlog.ts';
import { readWaitingBodies } from '../../engine/inbox/waiting-bodies.ts';
import { readQuotaUse } from '../../features/accounts/tenant-usage.ts';
import { listExpiringKeys } from '../../features/keys/api-key-store.ts';
import { countInbox, oldestWaitingBodyAt } from '../../ingest/bodies/quarantine.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { oldSnapshots } from '../../platform/postgres/long-holders.ts';
import { readPartitions } from '../../platform/postgres/partitions.ts';
import { missingMigrations, readSchemaState } from '../../platform/postgres/schema-state.ts';
import { readClockSkewMs, settingsThatLose } from '../../platform/postgres/server-checks.ts';
import { query, queryOnly } from '../../platform/postgres/sql.ts';
import { listHousekeepingSteps, listSeenWorkers } from '../../platform/postgres/worker-processes.ts';
import { ageSeconds, type Finding, fail, ok, sizeOf, unlessFine, warn } from './findings.ts';
import { EXPIRES_SOON_DAYS } from './limits.ts';
import { look, type OfDatabase, question, read } from './question.ts';
import { lookForRisks } from './safety-look.ts';

const REACH = 'start PostgreSQL, or correct HELIOGRAPH_DATABASE_URL';
const INTAKE = 'HeliographIntakeStuck';

/** Statements of the product end within a minute; a dump of a small database does in ten. */
const OLD_SNAPSHOT_MINUTES = 10;

/** Of more than so many of a kind, the first are named. */
export const MOST_LISTED = 5_000;

/** Answers of rooms that ask here themselves. */
export type OfOthers = {
  findAlerts: (database: Database) => Promise<Finding[]>;
  findSecrets: (tools: SealedDatabase) => Promise<Finding[]>;
};

export const DATABASE_QUESTIONS = {
  database: read((database) => query(database, 'select 1'), {
    question: 'Does PostgreSQL respond?',
    asker: 'anyone',
  }),
  server: question({
    line: 'database',
    question: 'Has PostgreSQL free connections, and does it keep what it commits?',
    ask: lookAtServer,
    away: REACH,
  }),
  schema: read(missingMigrations, {
    question: 'Which migrations of this version does the database lack?',
    asker: 'anyone',
    limit: { of: ({ length }) => length, degraded: 0, down: 0 },
    advice: 'run "heliograph-server migrate"',
  }),
  schemaState: read((database) => readSchemaState(database), {
    line: 'schema',
    question: 'Are migrations, functions and indexes those of this version?',
    away: REACH,
  }),
  role: look('roles', 'May the role of the processes read every table?', lookAtRole, REACH),
  partitions: read(readPartitions, {
    line: 'partitions',
    question: 'For how many of the next three days is there no partition?',
    limit: { of: ({ days }) => 3 - days, degraded: 0, down: 2 },
    advice: 'start a worker and look at the housekeeping step "partitions"',
  }),
  clock: read(readClockSkewMs, {
    line: 'clock',
    question: 'By how many seconds do the clocks of this process and of PostgreSQL differ?',
    asker: 'anyone',
    // Ids and days of events come from the process's clock, days of bodies and leases from the database's.
    limit: { of: (skewMs) => Math.abs(skewMs) / 1_000, degraded: 60, down: 60 },
    advice: 'set both clocks (NTP)',
    away: REACH,
  }),
  secrets: question({
    line: 'encryption keys',
    question: 'Does every stored secret open?',
    ask: ({ findSecrets, ...tools }: SealedDatabase & OfOthers) => findSecrets(tools),
  }),
  workers: read(listSeenWorkers, {
    line: 'workers',
    question: 'Which worker processes are up?',
    limit: { of: (workers) => (workers.some(({ isUp }) => isUp) ? 0 : 1), degraded: 0, down: 0 },
    advice: 'start "heliograph-server worker"',
  }),
  oldestBody: read(oldestWaitingBodyAt, {
    line: 'intake',
    question: 'For how long has the oldest body waited for intake?',
    limit: { of: ageSeconds, degraded: 60, down: 300, rule: [INTAKE, 'inbox_oldest_pending_seconds'] },
    advice: 'look at the log of the workers for the loop "intake"',
  }),
  inbox: read((database) => countInbox(database, ['new', 'failed']), {
    line: 'intake',
    question: 'How many bodies could not be ingested?',
    limit: { of: ({ failed }) => failed, degraded: 0, rule: [INTAKE, 'inbox_failed'] },
    advice: 'see "admin inbox status"',
  }),
  awaitingNumber: read(readWaitingBodies, {
    line: 'intake',
    question: 'For how long has a body waited for its phone number?',
    limit: {
      of: (found) => ageSeconds(found.oldestAt),
      degraded: 900,
      rule: [INTAKE, 'inbox_awaiting_number_oldest_seconds'],
    },
    advice: 'check the access token of their WABA: system health names it',
  }),
  quarantined: read((database) => countInbox(database, ['quarantined']), {
    question: 'How many bodies have items in quarantine?',
  }),
  pending: read(countPending, { line: 'deliveries', question: 'How many deliveries are pending?' }),
  oldestPending: read((database, pool) => oldestPendingAt(database, floorOf(pool)), {
    question: 'For how long has the oldest delivery been pending?',
    limit: { of: ageSeconds, degraded: 3_600 },
    advice: 'look at the endpoints that fail: system health names them',
  }),
  oldestDue: read(oldestDueAt, {
    line: 'deliveries',
    question: 'For how long has a delivery been due at an endpoint that works?',
    limit: {
      of: ageSeconds,
      degraded: 120,
      down: 600,
      rule: ['HeliographDeliveriesStuck', 'deliveries_oldest_due_seconds'],
    },
    advice: 'look at "admin top" and the log of the workers',
  }),
  traffic: read(readTraffic, {
    line: 'deliveries',
    question: 'Which share of the attempts of all endpoints together fails?',
    limit: {
      // Fewer failed attempts per second say nothing.
      of: ({ delivered, failed }) => (failed > 0.2 ? failed / (failed + delivered) : 0),
      degraded: 0.5,
      rule: ['HeliographMostAttemptsFail', 'delivery_attempts_total'],
    },
    advice:
      '"admin top" names the endpoints; if they are of many tenants, look at DNS and the network of the workers',
  }),
  housekeeping: read(listHousekeepingSteps, {
    line: 'housekeeping',
    question: 'For how long has a step of housekeeping failed?',
    limit: {
      of: (steps) => Math.max(0, ...steps.map(({ failingSince }) => ageSeconds(failingSince))),
      degraded: 0,
      rule: ['HeliographHousekeepingFails', 'housekeeping_failing_seconds', 4 * 3_600],
    },
    advice: 'fix the cause; it is retried every 10 minutes',
  }),
  alerts: question({
    line: 'alerts',
    question: 'Which alerts are open?',
    ask: ({ database, findAlerts }: OfDatabase & OfOthers) => findAlerts(database),
  }),
  quotas: read(readQuotaUse, {
    line: 'quotas',
    question: 'Which share of its quota has the tenant used that has used most?',
    limit: { of: Number, degraded: 0.9, rule: ['HeliographQuotaNearlyUsed', 'tenant_quota_used_ratio'] },
    advice: 'raise it, or tell the tenant: "admin tenant policy" shows which one it is',
  }),
  expiringKeys: read((database) => listExpiringKeys(database, EXPIRES_SOON_DAYS, MOST_LISTED), {
    question: 'Which API keys end soon, or ended lately?',
  }),
  safety: question({
    line: 'safety',
    question: 'Is the installation as safe as a new one?',
    ask: lookForRisks,
    away: 'see the check "database" first',
  }),
};

async function lookAtServer({ database }: { database: Database }): Promise<Finding[]> {
  const startMs = performance.now();
  const { version, bytes, used, most } = await queryOnly<{
    version: string;
    bytes: string;
    used: number;
    most: number;
  }>(
    database,
    `select current_setting('server_version') as version, pg_database_size(current_database()) as bytes,
            (select count(*)::integer from pg_stat_activity) as used,
            current_setting('max_connections')::integer as most`,
  );
  const tookMs = Math.round(performance.now() - startMs);
  const found: Finding[] = [ok(`PostgreSQL ${version}, ${sizeOf(Number(bytes))}, answered in ${tookMs} ms`)];
  if (used > 0.9 * most)
    found.push(warn(`${used} of ${most} connections are in use`, 'raise max_connections, or use a pooler'));
  const off = await settingsThatLose(database);
  if (off.length > 0)
    found.push(
      warn(`it runs without ${off.join(', ')}`, 'switch them on: a crash can lose acknowledged messages'),
    );
  for (const { holder, minutes } of await oldSnapshots(database, OLD_SNAPSHOT_MINUTES))
    found.push(
      warn(
        `${holder} holds a snapshot for ${minutes} minutes`,
        'let it end, or end it with pg_terminate_backend: meanwhile nothing that was delivered can be cleared away, and queues become slower',
      ),
    );
  return found;
}

async function lookAtRole({
  database,
  isEmbedded,
}: {
  database: Database;
  isEmbedded: boolean;
}): Promise<Finding[]> {
  const { role, isSuperuser, unreadable } = await queryOnly<{
    role: string;
    isSuperuser: boolean;
    unreadable: string[];
  }>(
    database,
    `select current_user as role, (select rolsuper from pg_roles where rolname = current_user) as "isSuperuser",
            array(select c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
                   where n.nspname = current_schema() and c.relkind in ('r', 'p') and not c.relispartition
                     and not has_table_privilege(c.oid, 'select') order by 1) as unreadable`,
  );
  const kind = isSuperuser ? 'the superuser of the embedded server' : 'no superuser';
  const grant = 'give the role its rights: deploy/postgres/roles.sql';
  return unlessFine(
    ok(`${role} reads every table and is ${kind}`),
    unreadable.length > 0 && fail(`${role} may not read ${unreadable.join(', ')}`, grant),
    isSuperuser &&
      !isEmbedded &&
      warn(`${role} is a superuser`, 'use a role of its own: deploy/postgres/roles.sql'),
  );
}

/** Of the minute before this one and of this one so far: workers add to it every second. */
export const LATELY = `date_trunc('minute', now()) - interval '1 minute'`;

async function readTraffic(database: Database): Promise<{ delivered: number; failed: number }> {
  return await queryOnly<{ delivered: number; failed: number }>(
    database,
    `select coalesce(sum(successes), 0) / seconds as delivered, coalesce(sum(failures), 0) / seconds as failed
       from (select cast(extract(epoch from now() - (${LATELY})) as double precision) as seconds) as span
       left join endpoint_minutes on minute >= ${LATELY}
      group by seconds`,
  );
}
