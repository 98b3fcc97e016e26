import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { runCommand } from '../../../dev/embedded/run-command.ts';

/** Settings of a PostgreSQL that archives its log in a directory, each file whole or not at all. */
export function archiveSettings(archive: string, timeoutSeconds: number): string[] {
  mkdirSync(archive, { recursive: true, mode: 0o777 });
  chmodSync(archive, 0o777);
  const file = `${archive}/%f`;
  return [
    'archive_mode=on',
    `archive_command=test ! -f ${file} && cp %p ${file}.part && mv ${file}.part ${file}`,
    `archive_timeout=${timeoutSeconds}`,
  ];
}

const COPY_MS = 300_000;

/** Copies a directory with everything in it; files that vanish meanwhile may be missing. */
export async function copyDirectory(from: string, to: string): Promise<void> {
  rmSync(to, { recursive: true, force: true });
  await runCommand(['cp', '-a', from, to], { timeoutMs: COPY_MS });
}

/**
 * A base backup of a running server, as pg_basebackup makes it, by PostgreSQL's low-level calls: the PostgreSQL of the
 * npm packages comes without that program. The log that belongs to it is in the archive when this resolves.
 */
export async function takeBaseBackup(url: string, dataDirectory: string, base: string): Promise<void> {
  const label = await withClient(url, async (client) => {
    await client.query(`select pg_backup_start('drill', true)`);
    await copyDirectory(dataDirectory, base);
    const stopped = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop()');
    return stopped.rows[0]?.labelfile ?? '';
  });
  for (const entry of readdirSync(join(base, 'pg_wal'), { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) rmSync(join(entry.parentPath, entry.name));
  }
  for (const name of ['postmaster.pid', 'postmaster.opts']) rmSync(join(base, name), { force: true });
  writeFileSync(join(base, 'backup_label'), label);
}

/** Puts a base backup in the place of a server that is stopped. It goes on from the archive when it is started. */
export async function putBack(
  base: string,
  dataDirectory: string,
  archive: string,
  target: Date | null,
): Promise<void> {
  await copyDirectory(base, dataDirectory);
  chmodSync(dataDirectory, 0o700);
  const settings = join(dataDirectory, 'postgresql.auto.conf');
  const kept = readFileSync(settings, 'utf8').split('\n');
  writeFileSync(settings, kept.filter((line) => !/^(restore_command|recovery_)/.test(line)).join('\n'));
  appendFileSync(settings, `\nrestore_command = 'cp ${archive}/%f %p'\nrecovery_target_action = 'promote'\n`);
  // It does not know the Z of ISO 8601 at that point.
  const time = target?.toISOString().replace('Z', '+00');
  if (time !== undefined) appendFileSync(settings, `recovery_target_time = '${time}'\n`);
  writeFileSync(join(dataDirectory, 'recovery.signal'), '');
}

/** Waits until the server has left recovery; returns the time of its newest commit, Unix time in ms. */
export async function untilRestored(url: string, timeoutMs: number): Promise<number> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const row = await withClient(url, async (client) => {
      const found = await client.query<{ recovering: boolean; atMs: string | null }>(
        `select pg_is_in_recovery() as recovering,
                floor(extract(epoch from pg_last_xact_replay_timestamp()) * 1000) as "atMs"`,
      );
      return found.rows[0];
    }).catch(() => undefined);
    if (row?.recovering === false && row.atMs !== null) return Number(row.atMs);
    if (Date.now() > deadline) throw new Error('PostgreSQL is still recovering');
    await delay(100);
  }
}

/** Ends the file of the log that is being written, as one does before a restore, so that it is archived. */
export async function endLogFile(url: string): Promise<void> {
  await withClient(url, async (client) => {
    const ended = await client.query<{ name: string }>('select pg_walfile_name(pg_switch_wal()) as name');
    const name = ended.rows[0]?.name ?? '';
    for (let tries = 0; tries < 300; tries += 1) {
      const { rows } = await client.query<{ done: boolean }>(
        'select last_archived_wal >= $1 as done from pg_stat_archiver',
        [name],
      );
      if (rows[0]?.done === true) return;
      await delay(100);
    }
    throw new Error('the log was not archived');
  });
}

async function withClient<T>(connectionString: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 5_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    void client.end().catch(() => undefined);
  }
}
