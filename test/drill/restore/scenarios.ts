import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { query } from '../../../src/platform/postgres/sql.ts';
import type { DrillAccount } from '../accounts.ts';
import { expectedAt } from '../check-run.ts';
import type { LoggedArrival, Receivers } from '../receivers.ts';
import type { Senders, SentBody } from '../senders.ts';
import { type Gap, isForgotten } from './check-restore.ts';
import { copyDirectory, endLogFile, putBack, takeBaseBackup, untilRestored } from './database-copies.ts';
import { type Difference, type Installation, PROCESSES } from './installation.ts';
import type { Restored, RestoreOptions } from './restore-result.ts';

/** A run between two restores. */
export type Run = {
  options: RestoreOptions;
  installation: Installation;
  accounts: readonly DrillAccount[];
  senders: Senders;
  receivers: Receivers;
  /** `<endpoint> <identity>` of everything taken. */
  taken: ReadonlySet<string>;
  gaps: Gap[];
  print: (line: string) => void;
  signal: AbortSignal;
};

const RECOVERY_MS = 300_000;
const CURRENT_MS = 300_000;
const POLL_MS = 200;
/** A commit and its acknowledgement are this close together. */
const AMBIGUOUS_MS = 2_000;

/** Base backup and a copy of the object store, while everything runs. */
export async function backUp({ installation, print }: Run): Promise<void> {
  const { paths, environment } = installation;
  mkdirSync(paths.copies, { recursive: true });
  const beganMs = Date.now();
  await takeBaseBackup(environment.HELIOGRAPH_DATABASE_URL ?? '', paths.postgres, join(paths.copies, 'base'));
  await copyDirectory(paths.objects, join(paths.copies, 'objects'));
  print(`base backup and copy of the object store: ${seconds(Date.now() - beganMs)} s`);
}

/** Somebody's mistake: PostgreSQL is taken back to a moment, everything else stays as it is. */
export async function takeDatabaseBack(run: Run): Promise<Restored> {
  const { installation, options, print, signal } = run;
  await delay(1_000 * options.betweenSeconds, undefined, { signal });
  const target = new Date();
  print(`this is the moment to go back to: ${target.toISOString()}`);
  await delay(60_000 * options.backMinutes, undefined, { signal });
  const lostMs = Date.now();
  await endLogFile(installation.environment.HELIOGRAPH_DATABASE_URL ?? '');
  await installation.stop(PROCESSES, 'stop');
  await installation.stop(['postgres'], 'stop');
  return await restoreDatabase(run, `PostgreSQL, ${options.backMinutes} minutes back`, { lostMs, target });
}

/** The machine of PostgreSQL is gone: there are the base backup and what was archived. */
export async function loseDatabase(run: Run): Promise<Restored> {
  const { installation, options, signal } = run;
  await backUp(run);
  await delay(1_000 * options.betweenSeconds, undefined, { signal });
  const lostMs = Date.now();
  await installation.stop(['postgres'], 'kill');
  await installation.stop(PROCESSES, 'stop');
  return await restoreDatabase(run, 'PostgreSQL alone, to the end of the archive', { lostMs, target: null });
}

async function restoreDatabase(
  run: Run,
  name: string,
  { lostMs, target }: { lostMs: number; target: Date | null },
): Promise<Restored> {
  const { installation, gaps, print } = run;
  const { paths, environment } = installation;
  await putBack(join(paths.copies, 'base'), paths.postgres, paths.archive, target);
  await installation.start(['postgres']);
  const newestMs = await untilRestored(environment.HELIOGRAPH_DATABASE_URL ?? '', RECOVERY_MS);
  const restoredMs = Date.now();
  print(`PostgreSQL is back; its newest commit is ${seconds(lostMs - newestMs)} s older than the loss`);
  await installation.heliograph('migrate');
  const { found, left } = await fixDifferences(run, '--rewound');
  const reconciledMs = Date.now();
  const gap = { fromMs: newestMs, toMs: Date.now() };
  gaps.push(gap);
  const forgotten = run.senders.bodies.filter((body) => isForgotten(body, [gap]));
  const events = forgotten.reduce((sum, body) => sum + body.events.length, 0);
  await installation.start(PROCESSES);
  const repeated = repeatSome(run, forgotten, newestMs);
  const after = await follow(run, lostMs, reconciledMs);
  const counts = { bodies: forgotten.length, events, repeated: await repeated };
  return {
    name,
    rpo: seconds(lostMs - newestMs),
    forgotten: counts,
    seconds: { restored: seconds(restoredMs - lostMs), reconciled: seconds(reconciledMs - lostMs), ...after },
    found: countsOf(found),
    left,
  };
}

/** Upstream, which may not have had our 200, sends some of them again, in their order. */
async function repeatSome(
  { senders, options, accounts }: Run,
  forgotten: readonly SentBody[],
  newestMs: number,
): Promise<number> {
  const chosen = forgotten.filter(
    ({ acknowledgedMs }, n) =>
      n % options.repeatOneOf === 0 && (acknowledgedMs ?? 0) > newestMs + AMBIGUOUS_MS,
  );
  await Promise.all(
    accounts.map(async ({ wabaId }) => {
      for (const body of chosen.filter((one) => one.wabaId === wabaId)) await senders.repeat(body);
    }),
  );
  return chosen.length;
}

/** Temporal's database is gone, everything else goes on. */
export async function loseTemporal(run: Run): Promise<Restored> {
  const { installation, options, signal } = run;
  await delay(1_000 * options.betweenSeconds, undefined, { signal });
  const lostMs = Date.now();
  await installation.stop(['temporal'], 'kill');
  rmSync(installation.paths.temporal, { recursive: true, force: true });
  mkdirSync(installation.paths.temporal, { mode: 0o700 });
  await installation.start(['temporal']);
  return await fixRunning(run, 'Temporal alone, empty', lostMs, 0);
}

/** The object store is gone, and put back as it was at the last backup; everything else goes on. */
export async function loseObjectStore(run: Run): Promise<Restored> {
  const { installation, options, signal } = run;
  await delay(1_000 * options.betweenSeconds, undefined, { signal });
  const lostMs = Date.now();
  await installation.stop(['minio'], 'kill');
  await copyDirectory(join(installation.paths.copies, 'objects'), installation.paths.objects);
  await installation.start(['minio']);
  return await fixRunning(run, 'object store alone, an older copy', lostMs, 0);
}

async function fixRunning(run: Run, name: string, lostMs: number, rpo: number): Promise<Restored> {
  const restoredMs = Date.now();
  const { found, left } = await fixDifferences(run);
  const reconciledMs = Date.now();
  const after = await follow(run, lostMs, reconciledMs);
  return {
    name,
    rpo,
    forgotten: { bodies: 0, events: 0, repeated: 0 },
    seconds: { restored: seconds(restoredMs - lostMs), reconciled: seconds(reconciledMs - lostMs), ...after },
    found: countsOf(found),
    left,
  };
}

/** Waits until what had waited is delivered and fetched. */
async function follow(
  run: Run,
  lostMs: number,
  reconciledMs: number,
): Promise<Pick<Restored['seconds'], 'upstream' | 'delivered' | 'current'>> {
  const { senders, receivers, gaps, print } = run;
  const waiting = senders.bodies.filter(({ acknowledgedMs }) => (acknowledgedMs ?? Infinity) <= reconciledMs);
  const [row] = await query<{ position: string }>(
    run.installation.database,
    'select coalesce(max(position), 0) as position from delivery_queue',
  );
  const deadline = Date.now() + CURRENT_MS;
  for (let polls = 1; ; polls += 1) {
    run.signal.throwIfAborted();
    const open = await openWork(run, row?.position ?? '0');
    const missing = missingOf(
      run,
      waiting.filter((body) => !isForgotten(body, gaps)),
    );
    if (open === 0 && missing === 0) break;
    if (Date.now() > deadline) throw new Error(`${missing} deliveries are missing, ${open} rows wait`);
    if (polls % 50 === 0) print(`${missing} deliveries missing, ${open} rows wait`);
    await delay(POLL_MS);
  }
  const currentMs = Date.now();
  const refused = senders.refusals.some(({ atMs }) => atMs > lostMs);
  const upstreamMs = firstMs(
    senders.bodies.map(({ acknowledgedMs }) => acknowledgedMs),
    senders.refusals
      .filter(({ atMs }) => atMs > lostMs)
      .reduce((last, { atMs }) => Math.max(last, atMs), lostMs),
  );
  const fresh = new Set(
    senders.bodies.flatMap(({ acknowledgedMs, events }) =>
      acknowledgedMs !== null && acknowledgedMs > (refused ? reconciledMs : lostMs)
        ? events.map(({ identity }) => identity)
        : [],
    ),
  );
  const isFresh = ({ accepted, content }: LoggedArrival) => accepted && fresh.has(content?.identity ?? '');
  const deliveredMs = firstMs(
    receivers
      .arrivals()
      .filter(isFresh)
      .map(({ answeredMs }) => answeredMs),
    refused ? reconciledMs : lostMs,
  );
  return {
    upstream: refused ? seconds(upstreamMs - lostMs) : 0,
    delivered: seconds(deliveredMs - lostMs),
    current: seconds(currentMs - lostMs),
  };
}

function firstMs(times: readonly (number | null)[], afterMs: number): number {
  return times.reduce<number>(
    (first, atMs) => (atMs !== null && atMs > afterMs ? Math.min(first, atMs) : first),
    Infinity,
  );
}

/** Deliveries up to this place in the queue, and media that is not fetched. */
async function openWork({ installation }: Run, position: string): Promise<number> {
  const rows = await query<{ open: string }>(
    installation.database,
    `select (select count(*) from delivery_queue where position <= cast(:position as bigint))
          + (select count(*) from media where state = 'pending' and created_at < now() - interval '20 seconds') as open`,
    { position },
  ).catch(() => []);
  return Number(rows[0]?.open ?? -1);
}

/** Deliveries of these bodies that no endpoint has taken. */
export function missingOf({ accounts, taken }: Run, bodies: readonly SentBody[]): number {
  return accounts.reduce((sum, account) => {
    const own = bodies.filter(({ wabaId }) => wabaId === account.wabaId);
    const names = account.endpoints.flatMap((endpoint) =>
      expectedAt(endpoint, own).map(({ identity }) => `${endpoint.index} ${identity}`),
    );
    return sum + names.filter((name) => !taken.has(name)).length;
  }, 0);
}

const FIX_TRIES = 5;

/** A look, and what an operator does then: fixes, and again until every look could be finished. */
async function fixDifferences({ installation, print }: Run, ...more: string[]) {
  const found = await installation.reconcile();
  for (const { kind, found: count, problem } of found) {
    if (count > 0 || problem !== null) print(`reconcile: ${kind} ${problem ?? count}`);
  }
  for (let tries = 1; ; tries += 1) {
    const fixed = await installation.reconcile('--fix', ...more);
    const isFinished = fixed.every(({ problem }) => problem === null);
    if (isFinished || tries === FIX_TRIES) return { found, left: unfinished(fixed) };
    print('a look could not be finished; fixing again');
  }
}

/** Objects that no row names stay, until somebody says that they may go. */
export function unfinished(differences: readonly Difference[]): string[] {
  return differences
    .filter(({ kind, left, problem }) => problem !== null || (left > 0 && kind !== 'object_without_row'))
    .map(({ kind, left, problem, examples }) => `${kind}: ${problem ?? `${left} (${examples.join(', ')})`}`);
}

function countsOf(differences: readonly Difference[]): Record<string, number> {
  return Object.fromEntries(
    differences.filter(({ found }) => found > 0).map(({ kind, found }) => [kind, found]),
  );
}

export function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
