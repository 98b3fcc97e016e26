import { oldestDueAt, readBacklog } from '../../engine/deliveries/backlog.ts';
import { readWaitingBodies } from '../../engine/inbox/waiting-bodies.ts';
import { readQuotaUse } from '../../features/accounts/tenant-usage.ts';
import { countInbox, oldestWaitingBodyAt } from '../../ingest/bodies/quarantine.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { readPartitions } from '../../platform/postgres/partitions.ts';
import { readSchemaState } from '../../platform/postgres/schema-state.ts';
import {
  MOST_CLOCK_SKEW_MS,
  readClockSkewMs,
  settingsThatLose,
} from '../../platform/postgres/server-checks.ts';
import { query } from '../../platform/postgres/sql.ts';
import { listHousekeepingSteps, listLiveWorkers } from '../../platform/postgres/worker-processes.ts';
import { byHealth, type Check, durationOf, type Finding, fail, ok, unlessFine, warn } from './checks.ts';
import { healthOf } from './limits.ts';

const REACH = 'start PostgreSQL, or correct HELIOGRAPH_DATABASE_URL';
const READ = 'see the check "database" first; if it is ok, run "heliograph-server migrate"';

/** What rooms find that ask this one for limits or for findings themselves. */
export type FromOthers = {
  findAlerts: (database: Database) => Promise<Finding[]>;
  findSecrets: (tools: SealedDatabase) => Promise<Finding[]>;
};

export function databaseChecks(
  tools: SealedDatabase,
  { isEmbedded, others }: { isEmbedded: boolean; others: FromOthers },
): Check[] {
  const { database } = tools;
  return [
    { name: 'database', todo: REACH, run: () => checkServer(database) },
    { name: 'schema', todo: REACH, run: () => checkSchemaState(database) },
    { name: 'roles', todo: REACH, run: () => checkRole(database, isEmbedded) },
    { name: 'partitions', todo: READ, run: () => checkPartitions(database) },
    { name: 'clock', todo: REACH, run: () => checkClock(database) },
    { name: 'encryption keys', todo: READ, run: () => others.findSecrets(tools) },
    { name: 'workers', todo: READ, run: () => checkWorkers(database) },
    { name: 'intake', todo: READ, run: () => checkIntake(database) },
    { name: 'deliveries', todo: READ, run: () => checkDeliveries(database) },
    { name: 'housekeeping', todo: READ, run: () => checkHousekeeping(database) },
    { name: 'alerts', todo: READ, run: () => others.findAlerts(database) },
    { name: 'quotas', todo: READ, run: () => checkQuotas(database) },
  ];
}

async function checkServer(database: Database): Promise<Finding[]> {
  const startMs = performance.now();
  const [row] = await query<{ version: string; bytes: string; used: number; most: number }>(
    database,
    `select current_setting('server_version') as version, pg_database_size(current_database()) as bytes,
            (select count(*)::integer from pg_stat_activity) as used,
            current_setting('max_connections')::integer as most`,
  );
  const { version = '', bytes = '0', used = 0, most = 1 } = row ?? {};
  const tookMs = Math.round(performance.now() - startMs);
  const found: Finding[] = [ok(`PostgreSQL ${version}, ${sizeOf(Number(bytes))}, answered in ${tookMs} ms`)];
  if (used > 0.9 * most)
    found.push(warn(`${used} of ${most} connections are in use`, 'raise max_connections, or use a pooler'));
  const off = await settingsThatLose(database);
  if (off.length > 0)
    found.push(
      warn(`it runs without ${off.join(', ')}`, 'switch them on: a crash can lose acknowledged messages'),
    );
  return found;
}

async function checkSchemaState(database: Database): Promise<Finding[]> {
  const { pending, later, functions, invalidIndexes, isRunning } = await readSchemaState(database);
  const migrate = 'run "heliograph-server migrate"';
  return unlessFine(
    ok('it is that of this version'),
    pending.length > 0 && fail(`migrations are missing: ${pending.join(', ')}`, migrate),
    functions !== 'current' && warn('its functions are of another version', migrate),
    invalidIndexes.length > 0 && warn(`no query uses these indexes: ${invalidIndexes.join(', ')}`, migrate),
    isRunning && warn('a migration is in progress', 'wait until it ends'),
    later.length > 0 &&
      warn(`a later version migrated it: ${later.join(', ')}`, 'bring all processes to one version'),
  );
}

async function checkRole(database: Database, isEmbedded: boolean): Promise<Finding[]> {
  const [row] = await query<{ role: string; isSuperuser: boolean; unreadable: string[] }>(
    database,
    `select current_user as role, (select rolsuper from pg_roles where rolname = current_user) as "isSuperuser",
            array(select c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
                   where n.nspname = current_schema() and c.relkind in ('r', 'p') and not c.relispartition
                     and not has_table_privilege(c.oid, 'select') order by 1) as unreadable`,
  );
  const { role = '', isSuperuser = false, unreadable = [] } = row ?? {};
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

/** Housekeeping makes a week of them. */
const FEW_DAYS = 3;
const MANY_ROWS = 10_000;

async function checkPartitions(database: Database): Promise<Finding[]> {
  const { defaultRows, days } = await readPartitions(database);
  const todo = 'start a worker and look at the housekeeping step "partitions"';
  const read = 'see docs/operators/monitoring.md, partitions';
  return unlessFine(
    ok(`for ${days} days, ${defaultRows} rows outside of them`),
    days < FEW_DAYS && (days === 0 ? fail : warn)(`there are partitions for ${days} days only`, todo),
    defaultRows > MANY_ROWS && warn(`over ${MANY_ROWS} rows are in default partitions`, read),
  );
}

async function checkClock(database: Database): Promise<Finding> {
  const skewMs = Math.abs(await readClockSkewMs(database));
  if (skewMs > MOST_CLOCK_SKEW_MS)
    return fail(
      `this machine and PostgreSQL differ by ${Math.round(skewMs / 1_000)} s`,
      'set both clocks (NTP)',
    );
  return ok(`it agrees with PostgreSQL's to ${Math.ceil(skewMs)} ms`);
}

async function checkWorkers(database: Database): Promise<Finding> {
  const workers = await listLiveWorkers(database);
  if (workers.length === 0)
    return fail('no worker runs: nothing is ingested or delivered', 'start "heliograph-server worker"');
  return ok(`${workers.length}: ${workers.join(', ')}`);
}

async function checkIntake(database: Database): Promise<Finding[]> {
  const [counts, oldest, awaiting] = await Promise.all([
    countInbox(database),
    oldestWaitingBodyAt(database),
    readWaitingBodies(database),
  ]);
  const { new: waiting = 0, failed = 0 } = counts;
  const ageMs = ageOf(oldest);
  const late = `${waiting} bodies wait, the oldest for ${durationOf(ageMs)}`;
  const checkToken = 'check the access token of their WABA: system health names it';
  return unlessFine(
    ok(`${waiting} bodies wait`),
    byHealth(
      healthOf('intakeSeconds', ageMs / 1_000),
      late,
      'look at the log of the workers for the loop "intake"',
    ),
    healthOf('failedBodies', failed) !== 'up' &&
      warn(`the intake of ${failed} bodies failed`, 'see "admin inbox status"'),
    healthOf('numberSeconds', ageOf(awaiting.oldestAt) / 1_000) !== 'up' &&
      warn(`${awaiting.count} bodies wait for a phone number`, checkToken),
  );
}

/** Fewer failed attempts per second say nothing. */
const FEW_PER_SECOND = 0.2;

async function checkDeliveries(database: Database): Promise<Finding[]> {
  const [backlog, dueAt, { delivered, failed }] = await Promise.all([
    readBacklog(database),
    oldestDueAt(database),
    readTraffic(database),
  ]);
  const pending = `${backlog.count}${backlog.more ? '+' : ''} are pending`;
  const ageMs = ageOf(dueAt);
  const late = `${pending}, one has been due for ${durationOf(ageMs)}`;
  const share = `${failed.toFixed(1)} of ${(failed + delivered).toFixed(1)} per second`;
  return unlessFine(
    ok(pending),
    byHealth(healthOf('dueSeconds', ageMs / 1_000), late, 'look at "admin top" and the log of the workers'),
    failed > FEW_PER_SECOND &&
      healthOf('failedShare', failed / (failed + delivered)) !== 'up' &&
      warn(
        `most attempts fail: ${share}`,
        '"admin top" names the endpoints; if they are of many tenants, look at DNS and the network of the workers',
      ),
  );
}

/** Of the minute before this one and of this one so far: workers add to it every second. */
export const LATELY = `date_trunc('minute', now()) - interval '1 minute'`;

export async function readTraffic(database: Database): Promise<{ delivered: number; failed: number }> {
  const [row] = await query<{ delivered: number; failed: number }>(
    database,
    `select coalesce(sum(successes), 0) / seconds as delivered, coalesce(sum(failures), 0) / seconds as failed
       from (select cast(extract(epoch from now() - (${LATELY})) as double precision) as seconds) as span
       left join endpoint_minutes on minute >= ${LATELY}
      group by seconds`,
  );
  return row ?? { delivered: 0, failed: 0 };
}

async function checkHousekeeping(database: Database): Promise<Finding[]> {
  const failing = (await listHousekeepingSteps(database)).filter(({ failingSince }) => failingSince !== null);
  const todo = 'fix the cause; it is retried every 10 minutes';
  return unlessFine(
    ok('every step went well'),
    ...failing.map(({ step, failingSince, error }) =>
      warn(`${step} has failed for ${durationOf(ageOf(failingSince))}: ${error}`, todo),
    ),
  );
}

async function checkQuotas(database: Database): Promise<Finding> {
  const used = await readQuotaUse(database);
  const text = `the fullest is used to ${Math.round(100 * used)} %`;
  if (healthOf('quotaShare', used) !== 'up')
    return warn(text, 'raise it, or tell the tenant: "admin tenant policy" shows which one it is');
  return ok(used === 0 ? 'none is set, or none is used' : text);
}

function ageOf(at: Date | null): number {
  return at === null ? 0 : Math.max(0, Date.now() - at.getTime());
}

export function sizeOf(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  return `${(bytes / 1_000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}
