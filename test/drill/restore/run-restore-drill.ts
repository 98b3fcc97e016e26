import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { query } from '../../../src/platform/postgres/sql.ts';
import { drillAccounts } from '../accounts.ts';
import { createDrillSupervisor, type DrillSupervisor } from '../drill-supervisor.ts';
import { type LoggedArrival, startReceivers } from '../receivers.ts';
import { startSenders } from '../senders.ts';
import { WEBHOOK_TIMEOUT_MS } from '../stack.ts';
import { checkRestored, isForgotten } from './check-restore.ts';
import { startInstallation } from './installation.ts';
import type { Restored, RestoreOptions, RestoreResult } from './restore-result.ts';
import {
  backUp,
  loseDatabase,
  loseObjectStore,
  loseTemporal,
  missingOf,
  type Run,
  seconds,
  takeDatabaseBack,
  unfinished,
} from './scenarios.ts';
import { checkSends, type Sends, startSends } from './sends.ts';

type Control = { print: (line: string) => void; signal: AbortSignal };

const FINISH_MS = 60_000;
const DRAIN_MS = 180_000;
const SCENARIOS = [takeDatabaseBack, loseDatabase, loseTemporal, loseObjectStore];

/** Runs the whole drill. Its directory is removed unless something was wrong. Throws when it cannot be carried out. */
export async function runRestoreDrill(options: RestoreOptions, control: Control): Promise<RestoreResult> {
  const dataDir = mkdtempSync(join(tmpdir(), 'heliograph-restore-'));
  const log = control.print;
  const supervisor = createDrillSupervisor({
    log,
    onCrash: (part, how) => log(`${part} ended by itself (${how})`),
  });
  const stopAtOnce = () => supervisor.kill();
  control.signal.addEventListener('abort', stopAtOnce, { once: true });
  let keep = true;
  try {
    const result = await drill(options, control, { dataDir, supervisor });
    keep = !result.ok;
    return result;
  } finally {
    control.signal.removeEventListener('abort', stopAtOnce);
    await supervisor.stop();
    if (keep && !control.signal.aborted) log(`data and logs are kept in ${dataDir}`);
    else rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
}

type Place = { dataDir: string; supervisor: DrillSupervisor };

async function drill(options: RestoreOptions, control: Control, place: Place): Promise<RestoreResult> {
  const accounts = drillAccounts(options.endpoints);
  const kinds = accounts.flatMap(({ endpoints }) => endpoints.map(({ kind }) => kind));
  const taken = new Set<string>();
  const onAccepted = ({ endpoint, content }: LoggedArrival) => taken.add(`${endpoint} ${content?.identity}`);
  const shape = { seed: options.seed, kinds, dripIntervalMs: WEBHOOK_TIMEOUT_MS / 32 };
  const receivers = await startReceivers(shape, onAccepted);
  try {
    const { archiveSeconds } = options;
    const log = control.print;
    const installation = await startInstallation(place.dataDir, place.supervisor, {
      accounts,
      archiveSeconds,
      log,
      endpointUrls: receivers.urls,
    });
    const { ingressUrl, appSecret } = installation;
    const senders = startSenders(
      { ingressUrl, appSecret, timeoutMs: 4_000 },
      { accounts, seed: options.seed, eventsPerSecond: options.eventsPerSecond },
    );
    const sends = await startSends(installation, accounts, options.sendsPerSecond);
    const run: Run = {
      options,
      installation,
      accounts,
      senders,
      receivers,
      taken,
      gaps: [],
      ...control,
    };
    try {
      return await carryOut(run, sends);
    } finally {
      senders.abort();
      await sends.stop();
      await installation.database.destroy().catch(() => undefined);
    }
  } finally {
    await receivers.close();
  }
}

async function carryOut(run: Run, sends: Sends): Promise<RestoreResult> {
  const startedMs = Date.now();
  const { print } = run;
  run.print = (line) =>
    print(
      `${seconds(Date.now() - startedMs)
        .toFixed(1)
        .padStart(7)} s  ${line}`,
    );
  const loadBefore = loadNow();
  const restores: Restored[] = [];
  await backUp(run);
  for (const scenario of SCENARIOS) {
    const restored = await scenario(run);
    restores.push(restored);
    run.print(`${restored.name}: current after ${restored.seconds.current} s`);
  }
  await Promise.all([run.senders.finish(FINISH_MS), sends.stop()]);
  run.receivers.beGood();
  const left = await drain(run);
  const result = await judge(run, { restores, left, sends });
  const loadAverage: [number, number] = [loadBefore, loadNow()];
  return {
    ...result,
    restores,
    loadAverage,
    options: run.options,
    startedAt: new Date(startedMs).toISOString(),
  };
}

type Left = { missing: number; deliveries: number; work: number };

/** Waits until everything is done that is to be done. */
async function drain(run: Run): Promise<Left> {
  const deadline = Date.now() + DRAIN_MS;
  for (;;) {
    run.signal.throwIfAborted();
    const remembered = run.senders.bodies.filter((body) => !isForgotten(body, run.gaps));
    const [row] = await query<{ deliveries: string; work: string }>(
      run.installation.database,
      `select (select count(*) from delivery_queue) as deliveries,
              (select count(*) from workflow_tasks where workflow_type <> 'refreshNumbers')
                + (select count(*) from media where state = 'pending') as work`,
    );
    const left = {
      missing: missingOf(run, remembered),
      deliveries: Number(row?.deliveries),
      work: Number(row?.work),
    };
    if (left.missing + left.deliveries + left.work === 0 || Date.now() > deadline) return left;
    await delay(500);
  }
}

async function judge(
  { accounts, senders, receivers, gaps, installation }: Run,
  { restores, left, sends }: { restores: readonly Restored[]; left: Left; sends: Sends },
): Promise<Pick<RestoreResult, 'ok' | 'counts' | 'offences'>> {
  const { bodies } = senders;
  const arrivals = receivers.arrivals();
  // Only now, for what is on its way is found as well.
  const last = unfinished(await installation.reconcile());
  const { sentTwice, neverSent } = await checkSends(installation.sandboxUrl, sends.sent, gaps);
  const offences = {
    ...checkRestored({ accounts, bodies, arrivals, gaps }),
    sentTwice,
    neverSent,
    left: [
      ...restores.flatMap(({ name, left: lines }) => lines.map((line) => `${name}: ${line}`)),
      ...last.map((line) => `at the end: ${line}`),
    ],
  };
  const accepted = arrivals.filter((arrival) => arrival.accepted);
  const different = new Set(accepted.map(({ endpoint, content }) => `${endpoint} ${content?.identity}`));
  const clean = Object.values(offences).every((list) => list.length === 0);
  return {
    ok: clean && left.missing + left.deliveries + left.work === 0,
    offences,
    counts: {
      bodies: bodies.length,
      events: bodies.reduce((sum, { events }) => sum + events.length, 0),
      taken: different.size,
      takenAgain: accepted.length - different.size,
      sends: sends.sent.length,
      missingAtTheEnd: left.missing,
      openDeliveriesAtTheEnd: left.deliveries,
      openWorkAtTheEnd: left.work,
    },
  };
}

function loadNow(): number {
  return Math.round((loadavg()[0] ?? 0) * 10) / 10;
}
