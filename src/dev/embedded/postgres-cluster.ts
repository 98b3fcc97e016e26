import { existsSync, lchownSync, lstatSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { keptSecret } from '../../platform/local-stack/private-file.ts';
import { minimalEnvironment } from './minimal-environment.ts';
import type { PostgresAccount } from './postgres-account.ts';
import type { PostgresPrograms } from './postgres-programs.ts';
import { runCommand } from './run-command.ts';

export const DATABASE_USER = 'heliograph';

interface PostgresCluster {
  readonly dataDirectory: string;
  readonly password: string;
}

/** The directories of the cluster below `directory`; nothing is made yet. */
export function clusterDirectory(directory: string): string {
  return join(directory, 'data');
}

/**
 * The database cluster in `directory`, made there at the first call (UTF-8, C locale, password in a file
 * beside it). An interrupted creation leaves nothing that would pass for a cluster.
 */
export async function ensureCluster(
  directory: string,
  programs: PostgresPrograms,
  account: PostgresAccount,
): Promise<PostgresCluster> {
  const dataDirectory = clusterDirectory(directory);
  const passwordFile = join(directory, 'password');
  const password = keptSecret(passwordFile, 24);
  if (!existsSync(join(dataDirectory, 'PG_VERSION'))) {
    const unfinished = join(directory, 'data.unfinished');
    rmSync(unfinished, { recursive: true, force: true });
    mkdirSync(unfinished, { mode: 0o700 });
    giveTo(unfinished, account);
    giveTo(passwordFile, account);
    await initialise(unfinished, passwordFile, programs, account);
    renameSync(unfinished, dataDirectory);
  }
  giveTo(dataDirectory, account);
  return { dataDirectory, password };
}

async function initialise(
  target: string,
  passwordFile: string,
  programs: PostgresPrograms,
  account: PostgresAccount,
): Promise<void> {
  const command = [
    ...[...account.launcher, programs.initdb, '--pgdata', target, '--username', DATABASE_USER],
    ...['--pwfile', passwordFile, '--auth', 'scram-sha-256', '--encoding', 'UTF8', '--locale', 'C'],
    // The server's own start-up makes the files safe; a cluster lost before that holds nothing.
    ...['--no-instructions', '--no-sync'],
  ];
  const { code, output } = await runCommand(command, { env: minimalEnvironment(), timeoutMs: 120_000 });
  if (code !== 0) throw new Error(`initdb failed (exit code ${code}):\n${output.trim()}`);
}

/** Only root can, and needs to: the way PostgreSQL is run may differ from the last time. */
function giveTo(path: string, account: PostgresAccount): void {
  const { uid, gid } = account.ownerId;
  const stat = lstatSync(path);
  if (process.getuid?.() !== 0 || stat.uid === uid) return;
  if (stat.isDirectory()) {
    for (const name of readdirSync(path, { recursive: true, encoding: 'utf8' })) {
      lchownSync(join(path, name), uid, gid);
    }
  }
  // The top comes last, so that an interrupted change is done again.
  lchownSync(path, uid, gid);
}
