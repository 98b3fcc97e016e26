import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { Logger } from '../logger.ts';
import type { Database } from './database.ts';
import { isUndefinedTable } from './error-class.ts';
import { MIGRATION_LOCK } from './migration-lock.ts';
import * as baseline from './migrations/0001-baseline.ts';
import { FUNCTIONS } from './migrations/0001-baseline.ts';
import * as limitsOfKeys from './migrations/0002-limits-of-keys.ts';
import * as heldHeads from './migrations/0003-index-of-held-heads.ts';
import * as noRunsOfFailuresOnly from './migrations/0004-no-runs-of-failures-only.ts';
import * as endpointChanges from './migrations/0005-endpoint-changes.ts';
import * as routing from './migrations/0006-conversation-routing.ts';
import * as optOuts from './migrations/0007-opt-outs.ts';
import * as paceOfUpstream from './migrations/0008-pace-of-upstream.ts';
import * as messageTemplates from './migrations/0009-message-templates.ts';
import * as platformApi from './migrations/0010-platform-api.ts';
import * as marketingRoute from './migrations/0011-marketing-route.ts';
import * as operationsHooks from './migrations/0012-operations-hooks.ts';
import * as portalLinks from './migrations/0013-portal-links.ts';
import * as scheduledMessages from './migrations/0014-scheduled-messages.ts';
import * as userRefs from './migrations/0015-user-refs.ts';
import * as earlyStarts from './migrations/0016-early-starts.ts';
import * as usageDays from './migrations/0017-usage-days.ts';
import * as framedPortal from './migrations/0018-framed-portal.ts';
import * as brands from './migrations/0019-brands.ts';
import * as alwaysWorkflowsFor from './migrations/0020-always-workflows-for.ts';
import * as windowClosing from './migrations/0021-window-closing.ts';
import * as usageAlerts from './migrations/0022-usage-alerts.ts';
import * as broadcasts from './migrations/0023-broadcasts.ts';
import * as buffering from './migrations/0024-buffering.ts';
import * as endpointHealth from './migrations/0025-endpoint-health.ts';
import * as resumedOptOuts from './migrations/0026-resumed-opt-outs.ts';
import * as setupLinks from './migrations/0027-setup-links.ts';
import * as oneSender from './migrations/0028-one-sender-of-alerts-and-hooks.ts';
import * as usageChanges from './migrations/0029-usage-changes-keep-pages.ts';
import * as stopsOfOptOuts from './migrations/0030-stops-of-opt-outs.ts';
import * as laterMessages from './migrations/0031-later-messages.ts';
import * as optOutWords from './migrations/0032-opt-out-words.ts';
import * as linksOfSomeWabas from './migrations/0033-links-of-some-wabas.ts';
import { query } from './sql.ts';

/** One that sets `transaction` to false runs without one, as a concurrent index needs it. None has a way back (docs/decisions/0046). */
type Migration = Knex.Migration & { config?: { transaction: boolean } };

export type Migrations = Readonly<Record<string, Migration>>;

/** All migrations in order. Append only: what has been released is never edited (docs/decisions/0046). */
export const MIGRATIONS: Migrations = {
  '0001-baseline': { up: baseline.up },
  '0002-limits-of-keys': { up: limitsOfKeys.up },
  '0003-index-of-held-heads': { up: heldHeads.up, config: heldHeads.config },
  '0004-no-runs-of-failures-only': { up: noRunsOfFailuresOnly.up },
  '0005-endpoint-changes': { up: endpointChanges.up },
  '0006-conversation-routing': { up: routing.up, config: routing.config },
  '0007-opt-outs': { up: optOuts.up },
  '0008-pace-of-upstream': { up: paceOfUpstream.up },
  '0009-message-templates': { up: messageTemplates.up },
  '0010-platform-api': { up: platformApi.up },
  '0011-marketing-route': { up: marketingRoute.up },
  '0012-operations-hooks': { up: operationsHooks.up },
  '0013-portal-links': { up: portalLinks.up },
  '0014-scheduled-messages': { up: scheduledMessages.up },
  '0015-user-refs': { up: userRefs.up },
  '0016-early-starts': { up: earlyStarts.up },
  '0017-usage-days': { up: usageDays.up },
  '0018-framed-portal': { up: framedPortal.up },
  '0019-brands': { up: brands.up },
  '0020-always-workflows-for': { up: alwaysWorkflowsFor.up },
  '0021-window-closing': { up: windowClosing.up, config: windowClosing.config },
  '0022-usage-alerts': { up: usageAlerts.up },
  '0023-broadcasts': { up: broadcasts.up },
  '0024-buffering': { up: buffering.up, config: buffering.config },
  '0025-endpoint-health': { up: endpointHealth.up },
  '0026-resumed-opt-outs': { up: resumedOptOuts.up },
  '0027-setup-links': { up: setupLinks.up },
  '0028-one-sender-of-alerts-and-hooks': { up: oneSender.up, config: oneSender.config },
  '0029-usage-changes-keep-pages': { up: usageChanges.up },
  '0030-stops-of-opt-outs': { up: stopsOfOptOuts.up },
  '0031-later-messages': { up: laterMessages.up },
  '0032-opt-out-words': { up: optOutWords.up },
  '0033-links-of-some-wabas': { up: linksOfSomeWabas.up },
};

export type SchemaState = {
  applied: { name: string; at: Date }[];
  pending: string[];
  /** Applied by a later version: this one works beside it. */
  later: string[];
  functions: 'current' | 'of another version';
  /** Indexes whose making was cut off: `migrate` makes them again. */
  invalidIndexes: string[];
  isRunning: boolean;
};

/** Reads the state of the schema; changes nothing and waits for nothing. */
export async function readSchemaState(database: Database, migrations = MIGRATIONS): Promise<SchemaState> {
  const applied = await readApplied(database);
  const names = Object.keys(migrations);
  const [row] = await query<{ invalid: string[]; running: boolean }>(
    database,
    `select array(select indexrelid::regclass::text from pg_index where not indisvalid order by 1) as invalid,
            exists (select from pg_locks where locktype = 'advisory' and granted and objsubid = 1
                       and classid = 0 and objid = :migrationLock
                       and database = (select oid from pg_database where datname = current_database())) as running`,
    { migrationLock: MIGRATION_LOCK },
  );
  return {
    applied,
    pending: names.filter((name) => !applied.some((done) => done.name === name)),
    later: applied.map(({ name }) => name).filter((name) => !names.includes(name)),
    functions: (await hasFunctions(database)) ? 'current' : 'of another version',
    invalidIndexes: row?.invalid ?? [],
    isRunning: row?.running ?? false,
  };
}

export async function missingMigrations(database: Database): Promise<string[]> {
  const applied = await readApplied(database);
  return Object.keys(MIGRATIONS).filter((name) => !applied.some((done) => done.name === name));
}

async function checkSchema(database: Database): Promise<void> {
  const missing = await missingMigrations(database);
  if (missing.length > 0) throw new SchemaBehindError(missing);
}

class SchemaBehindError extends Error {
  constructor(missing: readonly string[]) {
    super(`the schema of the database lacks ${missing.join(', ')}: run "heliograph-server migrate"`);
    this.name = 'SchemaBehindError';
  }
}

const LOOK_AGAIN_MS = 1_000;

/** Waits until the schema is that of this version or later. A database that is away is no reason to wait here. */
export async function waitForSchema(database: Database, logger: Logger): Promise<void> {
  for (let looks = 0; ; looks += 1) {
    try {
      return await checkSchema(database);
    } catch (error) {
      if (!(error instanceof SchemaBehindError)) return;
      if (looks === 0) logger.warn(`waiting: ${error.message}`);
      await sleep(LOOK_AGAIN_MS);
    }
  }
}

async function readApplied(database: Database): Promise<{ name: string; at: Date }[]> {
  return await rowsIfThere(
    query(database, 'select name, migration_time as at from schema_migrations order by id'),
  );
}

async function hasFunctions(database: Database): Promise<boolean> {
  const { name, sha256 } = FUNCTIONS;
  const noted = 'select from schema_files where name = :name and sha256 = :sha256';
  return (await rowsIfThere(query(database, noted, { name, sha256 }))).length > 0;
}

/** A new database has none of the tables. */
async function rowsIfThere<Row>(reading: Promise<Row[]>): Promise<Row[]> {
  try {
    return await reading;
  } catch (error) {
    if (isUndefinedTable(error)) return [];
    throw error;
  }
}
