import type { Logger } from 'pino';
import type { Config } from './platform/config/config.ts';
import { openLogger } from './platform/logger.ts';
import { openDatabase } from './platform/postgres/database.ts';
import { migrate } from './platform/postgres/migrate.ts';
import {
  connectTemporal,
  registerSearchAttributes,
  SearchAttributesMissingError,
} from './platform/temporal/worker-connection.ts';
import { serveAll, startOrExit } from './serve.ts';

/** Migrates the database; Temporal's search attributes too, when it is up (the worker makes up for it). */
export async function runMigrations(): Promise<void> {
  const config = await startOrExit();
  const logger = openLogger(config, 'migrate');
  if (!(await migrateDatabase(config, logger))) return;
  try {
    const { connection } = await connectTemporal(config.temporal);
    await registerSearchAttributes(connection, config.temporal.namespace);
    await connection.close();
  } catch (error) {
    if (error instanceof SearchAttributesMissingError) logger.error(error.message);
    else logger.warn({ err: error }, 'Temporal is away: the worker will register the search attributes');
  }
}

/**
 * For one container: migrates, then runs API and worker in one process until SIGTERM or SIGINT. Of several that start at
 * once one migrates, and the others wait. The worker registers the search attributes. `adopted` says which settings the
 * platform gave.
 */
export async function migrateAndServe(adopted: readonly string[]): Promise<void> {
  const config = await startOrExit(adopted);
  const logger = openLogger(config, 'migrate');
  if (adopted.length > 0) logger.info({ adopted }, 'the platform gives settings');
  if (await migrateDatabase(config, logger)) await serveAll(config);
}

/** False, with the exit code of a failure, when the schema could not be migrated. */
async function migrateDatabase(config: Config, logger: Logger): Promise<boolean> {
  const database = openDatabase({ ...config.database, applicationName: 'heliograph-migrate' });
  try {
    const names = await migrate(database);
    logger.info({ names }, names.length === 0 ? 'the schema is up to date' : 'migrated');
    return true;
  } catch (error) {
    logger.error({ err: error }, 'the schema could not be migrated');
    process.exitCode = 1;
    return false;
  } finally {
    await database.destroy();
  }
}
