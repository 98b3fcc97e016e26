import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { ensureBinaries, ensureBinary } from '../../dev/embedded/binaries.ts';
import { findPostgresPrograms, type PostgresPrograms } from '../../dev/embedded/postgres-programs.ts';
import { CannotRunError } from './machines.ts';

/** What runs on the machines besides Node.js. */
export type Programs = {
  postgres: PostgresPrograms;
  temporalServer: string;
  temporalSqlTool: string;
  minio: string;
  haproxy: string;
  /** The library that shows a process another time; null where it is not installed. */
  libfaketime: string | null;
};

/** The version that docker-compose.yml names. */
const TEMPORAL_SERVER = 'go.temporal.io/server/cmd';
const TEMPORAL_VERSION = 'v1.31.0';

/** Finds or builds every program; a first build of the Temporal server takes minutes. Throws CannotRunError. */
export async function findPrograms(log: (line: string) => void): Promise<Programs> {
  const haproxy = findHaproxy();
  const options = { env: process.env, log };
  const built = (name: string, variable: string, folder: string) => {
    const goPackage = `${TEMPORAL_SERVER}/${folder}@${TEMPORAL_VERSION}`;
    return ensureBinary({ name, variable, download: undefined, goPackage }, options);
  };
  const [postgres, { minio }, temporalServer, temporalSqlTool] = await Promise.all([
    findPostgresPrograms(),
    ensureBinaries(options),
    built('temporal-server', 'TEMPORAL_SERVER_BIN', 'server'),
    built('temporal-sql-tool', 'TEMPORAL_SQL_TOOL_BIN', 'tools/sql'),
  ]);
  return {
    postgres,
    minio,
    haproxy,
    temporalServer,
    temporalSqlTool,
    libfaketime: findLibfaketime(),
  };
}

function findHaproxy(): string {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  const found = folders.map((folder) => join(folder, 'haproxy')).find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new CannotRunError(
    'npm run cluster needs the program haproxy (Debian: apt-get install haproxy): three APIs without a proxy ' +
      'that checks their health are not an installation that anybody runs.',
  );
}

function findLibfaketime(): string | null {
  if (!existsSync('/usr/lib')) return null;
  const folders = ['/usr/lib', ...readdirSync('/usr/lib').map((name) => join('/usr/lib', name))];
  const paths = folders.map((folder) => join(folder, 'faketime', 'libfaketime.so.1'));
  return paths.find((path) => existsSync(path)) ?? null;
}
