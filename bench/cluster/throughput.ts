import { setTimeout as delay } from 'node:timers/promises';
import type { Installation } from './installation.ts';
import { type Load, type LoadResult, readCpu, steadyRate } from './load.ts';
import type { Row } from './report.ts';

export type Bench = { installation: Installation; load: Load; quick: boolean; log: (line: string) => void };

/** An endpoint gets at most 100 attempts at a time from one process. */
const AT_ONCE = 100;
const MEAN_ANSWER_SECONDS = 1.45;

/** Receivers that take 1 to 2 s: what more workers give when attempts at a time are the limit. */
export async function slots({ installation, load, quick, log }: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  const seconds = quick ? 20 : 30;
  let one = 0;
  for (const workers of quick ? [1, 2, 4] : [1, 2, 4, 8]) {
    await installation.setWorkers(workers);
    const count = Math.round((workers * AT_ONCE * seconds) / MEAN_ANSWER_SECONDS);
    const result = await load.run({ to: 'slow', count, ratePerSecond: null, waiting: true });
    const rate = steadyRate(result.arrivedMs);
    if (workers === 1) one = rate;
    const ratio = rate / one;
    log(`slots, ${workers} workers: ${rate.toFixed(1)}/s, ${ratio.toFixed(2)} times one; ${cpuText(result)}`);
    const row = { scenario: 'slots', what: `${workers} workers, receivers of 1 to 2 s` };
    rows.push({
      ...row,
      figure: `${rate.toFixed(0)}/s, ${ratio.toFixed(2)} × one, ${lossText(result)}`,
      target: workers === 1 ? '0 lost' : `≥ ${(0.9 * workers).toFixed(1)} × one, 0 lost`,
      isMet: ratio >= 0.9 * workers * (workers === 1 ? 0 : 1) && isWhole(result),
    });
  }
  return rows;
}

/** So much of a core leaves the rest of two cores to everything else, so that the workers are the limit. */
const CAP = 0.2;

/** Workers that have too little CPU: what a second machine gives. */
export async function cpu({ installation, load, quick, log }: Bench): Promise<Row[]> {
  const rates: number[] = [];
  let whole = true;
  for (const workers of [1, 2]) {
    await installation.setWorkers(0);
    await installation.setWorkers(workers);
    for (const name of installation.workers()) installation.machine(name).group.limitCores(CAP);
    const result = await load.run({
      to: 'fast',
      count: workers * (quick ? 2_000 : 5_000),
      ratePerSecond: null,
      waiting: true,
    });
    for (const name of installation.workers()) installation.machine(name).group.limitCores(null);
    rates.push(steadyRate(result.arrivedMs));
    whole &&= isWhole(result);
    log(`cpu, ${workers} workers of ${CAP} cores: ${rates.at(-1)?.toFixed(0)}/s; ${cpuText(result)}`);
  }
  const [one = 0, two = 0] = rates;
  return [
    {
      scenario: 'cpu',
      what: `2 workers of ${CAP} cores each`,
      figure: `${one.toFixed(0)}/s and ${two.toFixed(0)}/s, ${(two / one).toFixed(2)} × one${whole ? '' : ', NOT ALL ARRIVED'}`,
      target: '≥ 1.8 × one, 0 lost',
      isMet: two >= 1.8 * one && whole,
    },
  ];
}

const COST_RATE = 250;
const IDLE_MS = 8_000;

/** What an event costs PostgreSQL, with one worker and with eight. */
export async function database({ installation, load, quick, log }: Bench): Promise<Row[]> {
  const costs: { perEvent: number; idle: number }[] = [];
  const sizes: string[] = [];
  for (const workers of [1, 8]) {
    await installation.setWorkers(workers);
    await load.run({ to: 'fast', count: 500, ratePerSecond: COST_RATE });
    await delay(2_000);
    const before = databaseCpu(readCpu(installation));
    await delay(IDLE_MS);
    const idle = (databaseCpu(readCpu(installation)) - before) / IDLE_MS;
    const sizeBefore = await readSizes(installation);
    const result = await load.run({
      to: 'fast',
      count: COST_RATE * (quick ? 20 : 40),
      ratePerSecond: COST_RATE,
    });
    const sizeAfter = await readSizes(installation);
    const perEvent = databaseCpu(result.cpuMs) / result.arrivedMs.length;
    costs.push({ perEvent, idle });
    const kib = (name: 'wal' | 'disk') =>
      (sizeAfter[name] - sizeBefore[name]) / 1_024 / result.arrivedMs.length;
    sizes.push(`${kib('wal').toFixed(1)} and ${kib('disk').toFixed(1)} KiB`);
    log(
      `database, ${workers} workers: ${perEvent.toFixed(2)} ms per event, ${idle.toFixed(3)} cores idle; ${cpuText(result)}`,
    );
  }
  const [one = { perEvent: 0, idle: 0 }, eight = one] = costs;
  const ratio = eight.perEvent / one.perEvent;
  return [
    {
      scenario: 'database',
      what: `PostgreSQL CPU per event at ${COST_RATE}/s, 1 and 8 workers`,
      figure: `${one.perEvent.toFixed(2)} and ${eight.perEvent.toFixed(2)} ms, ${ratio.toFixed(2)} × one`,
      target: '≤ 1.1 × one',
      isMet: ratio <= 1.1,
    },
    {
      scenario: 'database',
      what: 'of it while nothing comes, 1 and 8 workers',
      figure: `${(100 * one.idle).toFixed(1)} and ${(100 * eight.idle).toFixed(1)} % of a core`,
      target: '',
      isMet: null,
    },
    {
      scenario: 'database',
      what: 'log written and disk taken per event, 1 worker',
      figure: sizes[0] ?? '',
      target: '',
      isMet: null,
    },
  ];
}

/** Bytes of log that were written so far, and bytes of tables and indexes. */
async function readSizes({ pair }: Installation): Promise<{ wal: number; disk: number }> {
  const [row] = await pair
    .primary()
    .query<{ wal: string; disk: string }>(
      `select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as wal, pg_database_size('heliograph') as disk`,
    );
  return { wal: Number(row?.wal), disk: Number(row?.disk) };
}

/** Primary and standby. */
function databaseCpu(cpuMs: Readonly<Record<string, number>>): number {
  return (cpuMs['db-1'] ?? 0) + (cpuMs['db-2'] ?? 0);
}

function isWhole({ check }: LoadResult): boolean {
  return check.missing === 0 && check.orderViolations === 0;
}

function lossText({ check }: LoadResult): string {
  return `${check.missing} lost`;
}

function cpuText({ cpuMs, arrivedMs, seconds }: LoadResult): string {
  const perEvent = Object.entries(cpuMs).map(([name, ms]) => `${name} ${(ms / arrivedMs.length).toFixed(2)}`);
  return `${seconds.toFixed(1)} s; CPU ms per event: ${perEvent.join(', ')}`;
}
