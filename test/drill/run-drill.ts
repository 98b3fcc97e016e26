import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { query } from '../../src/platform/postgres/sql.ts';
import { drillAccounts } from './accounts.ts';
import { waitForDeliveries } from './drain.ts';
import { type Crash, type DrillOptions, type DrillResult, resultOf, type Timeline } from './drill-result.ts';
import { createDrillSupervisor, type DrillSupervisor } from './drill-supervisor.ts';
import { type NemesisEvent, runNemesis } from './nemesis.ts';
import { nemesisPlan, temporalSteps } from './nemesis-plan.ts';
import { type LoggedArrival, type Receivers, startReceivers } from './receivers.ts';
import { startSenders } from './senders.ts';
import { type DrillStack, LEASE_MS, startStack, WEBHOOK_TIMEOUT_MS } from './stack.ts';

export type DrillControl = {
  print: (line: string) => void;
  /** Stops everything at once. */
  signal: AbortSignal;
};

const UNTIL_READY_MS = 180_000;
const FINISH_SENDING_MS = 60_000;
const PROGRESS_EVERY_MS = 10_000;
/** A late duplicate of a frozen attempt still comes within this. */
const AFTERMATH_MS = 2_000;
/** A part that ends so often though nobody kills it is not worth waiting for. */
const MAX_CRASHES = 15;

/** Runs a whole drill. Its directory is removed unless something was wrong. Throws when it cannot be carried out. */
export async function runDrill(options: DrillOptions, control: DrillControl): Promise<DrillResult> {
  const dataDir = mkdtempSync(join(tmpdir(), 'heliograph-drill-'));
  const crashes: Crash[] = [];
  const hopeless = new AbortController();
  const signal = AbortSignal.any([control.signal, hopeless.signal]);
  const supervisor = createDrillSupervisor({
    log: (line) => control.print(line),
    onCrash: (part, how) => {
      crashes.push({ atMs: Date.now(), part, how });
      control.print(`${part} ended by itself (${how})`);
      if (crashes.filter((crash) => crash.part === part).length < MAX_CRASHES) return;
      hopeless.abort(new Error(`${part} does not stay up; its last lines:\n${supervisor.lastLines(part)}`));
    },
  });
  const stopAtOnce = () => supervisor.kill();
  signal.addEventListener('abort', stopAtOnce, { once: true });
  let keep = true;
  try {
    const result = await drill(options, { ...control, signal }, { dataDir, supervisor, crashes });
    keep = !result.ok;
    return result;
  } catch (error) {
    // What failed because everything was stopped is less telling than why it was.
    hopeless.signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', stopAtOnce);
    await supervisor.stop();
    if (keep && !control.signal.aborted) control.print(`data and logs are kept in ${dataDir}`);
    else rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
}

type Place = { dataDir: string; supervisor: DrillSupervisor; crashes: Crash[] };

async function drill(options: DrillOptions, control: DrillControl, place: Place): Promise<DrillResult> {
  const accounts = drillAccounts(options.endpoints);
  const taken = new Set<string>();
  const onAccepted = ({ endpoint, content }: LoggedArrival) => taken.add(`${endpoint} ${content?.identity}`);
  const kinds = accounts.flatMap(({ endpoints }) => endpoints.map(({ kind }) => kind));
  // All bytes of a dripping answer take longer than the time-out.
  const dripIntervalMs = WEBHOOK_TIMEOUT_MS / 32;
  const receivers = await startReceivers({ seed: options.seed, kinds, dripIntervalMs }, onAccepted);
  let stack: DrillStack | null = null;
  try {
    const startedMs = Date.now();
    const log = (line: string) => control.print(line);
    stack = await startStack(place.dataDir, place.supervisor, {
      accounts,
      endpointUrls: receivers.urls,
      processes: options.processes,
      log,
    });
    const run = { options, control, place, accounts, receivers, stack, taken, startedMs };
    return await carryOut(run);
  } finally {
    await stack?.database.destroy().catch(() => undefined);
    await receivers.close();
  }
}

type Run = {
  options: DrillOptions;
  control: DrillControl;
  place: Place;
  accounts: ReturnType<typeof drillAccounts>;
  receivers: Receivers;
  stack: DrillStack;
  /** `<endpoint> <identity>` of everything taken. */
  taken: ReadonlySet<string>;
  startedMs: number;
};

async function carryOut(run: Run): Promise<DrillResult> {
  const { options, control, place, accounts, receivers, stack, taken, startedMs } = run;
  const readyMs = Date.now();
  const seconds = () => ((Date.now() - readyMs) / 1_000).toFixed(1).padStart(6);
  const print = (line: string) => control.print(`${seconds()} s  ${line}`);
  const plan = nemesisPlan({ ...options, leaseMs: LEASE_MS });
  print(
    `ready; ${plan.length} kills and pauses to come, ${accounts.length} WABAs, ${options.endpoints} endpoints`,
  );
  const { ingressUrl, appSecret } = stack;
  const senders = startSenders(
    { ingressUrl, appSecret, timeoutMs: 4_000 },
    { accounts, seed: options.seed, eventsPerSecond: options.eventsPerSecond },
  );
  const events: NemesisEvent[] = [];
  const sentEvents = () => senders.bodies.reduce((sum, body) => sum + body.events.length, 0);
  const progress = setInterval(
    () => print(`${sentEvents()} events sent, ${taken.size} deliveries taken, ${events.length} deeds`),
    PROGRESS_EVERY_MS,
  );
  const stopSending = () => senders.abort();
  control.signal.addEventListener('abort', stopSending, { once: true });
  try {
    const onEvent = (event: NemesisEvent) => {
      events.push(event);
      print(
        `${event.n === null ? 'beside:' : `#${event.n}`} ${event.deed} ${event.target}, away ${(event.awayMs / 1_000).toFixed(1)} s`,
      );
    };
    const { seed, temporalAwayPercent: awayPercent } = options;
    const beside = awayPercent > 0 ? temporalSteps({ seed, awayPercent }) : [];
    await runNemesis(place.supervisor, plan, onEvent, { signal: control.signal, beside });
    while (sentEvents() < options.events && !control.signal.aborted) await delay(50);
    await Promise.all([place.supervisor.allReady(UNTIL_READY_MS), senders.finish(FINISH_SENDING_MS)]);
    control.signal.throwIfAborted();
    const calmMs = Date.now();
    print(`calm: ${sentEvents()} events sent, everything is up; waiting for the last deliveries`);
    const openDeliveries = async () => {
      const rows = await query<{ open: string }>(
        stack.database,
        'select count(*) as open from delivery_queue',
      );
      return Number(rows[0]?.open);
    };
    const drained = { bodies: senders.bodies, accounts, taken, receivers, openDeliveries };
    const left = await waitForDeliveries(drained, {
      timeoutMs: options.drainTimeoutMs,
      print,
      signal: control.signal,
    });
    const drainedMs = Date.now();
    await delay(AFTERMATH_MS);
    const timeline: Timeline = { startedMs, readyMs, calmMs, drainedMs };
    const { bodies } = senders;
    const arrivals = receivers.arrivals();
    return resultOf({ options, accounts, bodies, arrivals, events, crashes: place.crashes, left, timeline });
  } finally {
    clearInterval(progress);
    control.signal.removeEventListener('abort', stopSending);
    senders.abort();
  }
}
