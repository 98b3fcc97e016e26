import { openLogger } from './platform/logger.ts';
import { openDatabase } from './platform/postgres/database.ts';
import { migrate } from './platform/postgres/migrate.ts';
import {
  connectTemporal,
  registerSearchAttributes,
  SearchAttributesMissingError,
} from './platform/temporal/worker-connection.ts';
import { startOrExit } from './serve.ts';

/** Migrates the database; Temporal's search attributes too, when it is up (the worker makes up for it). */
export async function runMigrations(): Promise<void> {
  const config = await startOrExit();
  const logger = openLogger(config, 'migrate');
  const database = openDatabase({ ...config.database, applicationName: 'heliograph-migrate' });
  try {
    const names = await migrate(database);
    logger.info({ names }, names.length === 0 ? 'the schema is up to date' : 'migrated');
  } catch (error) {
    logger.error({ err: error }, 'the schema could not be migrated');
    process.exitCode = 1;
    return;
  } finally {
    await database.destroy();
  }
  try {
    const { connection } = await connectTemporal(config.temporal);
    await registerSearchAttributes(connection, config.temporal.namespace);
    await connection.close();
  } catch (error) {
    if (error instanceof SearchAttributesMissingError) logger.error(error.message);
    else logger.warn({ err: error }, 'Temporal is away: the worker will register the search attributes');
  }
}
