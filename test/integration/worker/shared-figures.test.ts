import { expect, onTestFinished, test } from 'vitest';
import { RunShare } from '../../../src/engine/deliveries/loop/run-share.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import type { DatabasePool } from '../../../src/platform/postgres/database.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { reportWorker, type WorkerPeers } from '../../../src/platform/postgres/worker-processes.ts';
import { startHeartbeat } from '../../../src/worker/heartbeat.ts';
import {
  readStoredFigures,
  startFiguresKeeper,
  storeFigures,
} from '../../../src/worker/metrics/shared-figures.ts';
import { readSystemFigures } from '../../../src/worker/metrics/system-figures.ts';
import { makeWorkerMetrics } from '../../../src/worker/metrics/worker-metrics.ts';
import { makeWorkerScrape } from '../../../src/worker/metrics/worker-scrape.ts';
import { samplesOf } from '../../support/metrics-text.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase, testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually } from '../../support/webhook-receiver.ts';

/** A worker's scrape as Prometheus's first one finds it: nothing is kept from an earlier one. */
async function firstScrape(database: DatabasePool): Promise<string> {
  const config = loadConfig(testSettings('postgresql://nobody@127.0.0.1/nothing'));
  const now = () => ({
    isStopping: false,
    hasStarted: true,
    listenerDownMs: 0,
    temporalAwayMs: 0,
    loops: new Map(),
    deafMs: new Map(),
  });
  const parts = {
    config,
    database,
    pools: [database],
    watch: { now },
    loop: { inFlight: () => 0 },
    runs: { share: new RunShare() },
  };
  return (await makeWorkerScrape(makeWorkerMetrics(), parts)()).text;
}

/** Counts the statements on all endpoints, in transactions and outside. */
function countingReads(database: DatabasePool) {
  const seen = { expensive: 0, all: 0 };
  const wrap = <Given extends Pick<DatabasePool, 'raw' | 'transaction'>>(given: Given): Given => ({
    ...given,
    raw: (text, bindings) => {
      seen.all += 1;
      if (/group by mode/.test(text)) seen.expensive += 1;
      return given.raw(text, bindings);
    },
    transaction: (work) => given.transaction((trx) => work(wrap(trx))),
  });
  return { seen, database: wrap(database) };
}

/** A process with heartbeat and keeper of the figures; `stop` ends both. */
function startProcess(database: DatabasePool, worker: string) {
  let peers: WorkerPeers = { count: 1, rank: 0, isElsewhere: false, isLeader: false };
  const onPeers = (seen: WorkerPeers) => {
    peers = seen;
  };
  const loops = [
    startHeartbeat({ database, logger: silentLogger, worker, onPeers }),
    startFiguresKeeper({ database, logger: silentLogger, isLeader: () => peers.isLeader }),
  ];
  return {
    isLeader: () => peers.isLeader,
    stop: async () => void (await Promise.all(loops.map((loop) => loop.stop()))),
  };
}

const shownBy = (text: string) => {
  const samples = samplesOf(text);
  return ['database_up', 'endpoints{mode="open"}', 'inbox_backlog'].map((name) =>
    samples.get(`heliograph_${name}`),
  );
};

test('of two workers one reads what costs a step per endpoint, and ten scrapes of either read one row', async () => {
  const { database } = await seededDatabase();
  await addEndpoint(database, '900000000000101', 'https://example.com/hook');
  const counted = ['host:1', 'host:2'].map((worker) => ({ worker, ...countingReads(database) }));
  // Each knows of the other from its first heartbeat on.
  for (const { worker } of counted) await reportWorker(database, worker);
  const processes = counted.map((own) => startProcess(own.database, own.worker));
  await eventually('figures are stored', async () => (await readStoredFigures(database)) !== null);
  await Promise.all(processes.map(({ stop }) => stop()));
  expect(counted.map(({ seen }) => seen.expensive).toSorted()).toEqual([0, 1]);

  for (const { database: own, seen } of counted) {
    const before = { ...seen };
    for (let n = 0; n < 10; n += 1) expect(shownBy(await firstScrape(own))).toEqual([1, 1, 0]);
    expect([seen.expensive - before.expensive, seen.all - before.all]).toEqual([0, 10]);
  }
});

test('another worker goes on with the figures when the leader has ended', async () => {
  const { database } = await testDatabase();
  const first = startProcess(database, 'host:1');
  await eventually('it leads', async () => first.isLeader() && (await readStoredFigures(database)) !== null);
  const second = startProcess(database, 'host:2');
  onTestFinished(second.stop);
  await first.stop();
  await execute(database, 'delete from system_figures');
  await eventually('figures again', async () => (await readStoredFigures(database)) !== null);
  expect(second.isLeader()).toBe(true);
});

test('figures that are absent or older than two minutes are left out, and PostgreSQL is up all the same', async () => {
  const { database } = await testDatabase();
  expect(shownBy(await firstScrape(database))).toEqual([1, undefined, undefined]);
  await storeFigures(database, (await readSystemFigures(database, 10_000)).figures);
  const age = async (seconds: number) =>
    await execute(
      database,
      `update system_figures set read_at = clock_timestamp() - :seconds::integer * interval '1 second'`,
      { seconds },
    );
  await age(60);
  expect(shownBy(await firstScrape(database))).toEqual([1, 0, 0]);
  await age(121);
  expect(shownBy(await firstScrape(database))).toEqual([1, undefined, undefined]);
});
