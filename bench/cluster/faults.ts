import { setTimeout as delay } from 'node:timers/promises';
import { createTenant } from '../../src/features/accounts/accounts.ts';
import { addWaba } from '../../src/features/accounts/wabas.ts';
import { storeEndpoint } from '../../src/features/endpoints/endpoints.ts';
import { SYSTEM } from '../../src/platform/audit/audit.ts';
import { query } from '../../src/platform/postgres/sql.ts';
import { type DrillAccount, drillAccounts } from '../../test/drill/accounts.ts';
import { checkRun, type Offences } from '../../test/drill/check-run.ts';
import { waitForDeliveries } from '../../test/drill/drain.ts';
import { type Disturbance, findDuplicates } from '../../test/drill/duplicates.ts';
import { type LoggedArrival, type Receivers, startReceivers } from '../../test/drill/receivers.ts';
import { type Senders, startSenders } from '../../test/drill/senders.ts';
import { FAULTS, type Fault } from './fault-list.ts';
import { type Installation, WEBHOOK_TIMEOUT_MS } from './installation.ts';
import { CannotRunError } from './machines.ts';
import { type DoneFault, LONGEST_HEALTHY_MS, recoveryOf } from './recovery.ts';
import type { Row } from './report.ts';

const ENDPOINTS = 9;
const WORKERS = 3;
const EVENTS_PER_SECOND = 30;
/** Upstream waits longer for an answer than anything here takes. */
const UPSTREAM_TIMEOUT_MS = 12_000;
const CALM_MS = { before: 2_000, after: 14_000 };
const DRAIN_MS = 180_000;
const SEED = 14;
/** Late events that are named of each fault whose target is missed. */
const LATE_SHOWN = 30;

type FaultBench = {
  installation: Installation;
  quick: boolean;
  log: (line: string) => void;
  /** Names; null: all. */
  faults: readonly string[] | null;
};

/** Machines die, freeze, lose each other, while upstream sends without a pause; judged once all has arrived. */
export async function faults({ installation, log, faults: names }: FaultBench): Promise<Row[]> {
  const chosen = FAULTS.filter(({ name }) => names === null || names.includes(name));
  if (chosen.length === 0) {
    throw new CannotRunError(`The faults are ${FAULTS.map(({ name }) => name).join(', ')}.`);
  }
  await installation.setWorkers(WORKERS);
  const accounts = clusterAccounts();
  const taken = new Set<string>();
  const receivers = await openReceivers(installation, accounts, taken);
  let senders: Senders | null = null;
  try {
    await addAccounts(installation, accounts, receivers.urls);
    const { host, port, appSecret } = installation.ingress;
    senders = startSenders(
      { ingressUrl: `http://${host}:${port}`, appSecret, timeoutMs: UPSTREAM_TIMEOUT_MS },
      { accounts, seed: SEED, eventsPerSecond: EVENTS_PER_SECOND, media: false },
    );
    const rows: Row[] = [];
    const done: DoneFault[] = [];
    const factsNow = (from: Senders) => ({ accounts, senders: from, arrivals: receivers.arrivals() });
    for (const fault of chosen) {
      const result = await suffer(installation, fault, log);
      const row = 'scenario' in result ? result : faultRow(result, factsNow(senders));
      log(`${fault.name}: ${row.figure}`);
      if ('scenario' in result) rows.push(result);
      else done.push(result);
    }
    await senders.finish(60_000);
    const openDeliveries = () => countOpen(installation);
    const drained = { bodies: senders.bodies, accounts, taken, receivers, openDeliveries };
    const options = { timeoutMs: DRAIN_MS, print: log, signal: new AbortController().signal };
    const left = await waitForDeliveries(drained, options);
    await delay(2_000);
    const facts = factsNow(senders);
    for (const one of done) {
      const row = faultRow(one, facts);
      rows.push(row);
      if (row.isMet) continue;
      for (const line of recoveryOf(one, facts).late.slice(0, LATE_SHOWN)) log(`${one.fault.name}: ${line}`);
    }
    return [...rows, ...wholeRows(facts, done, left.missing + left.openDeliveries, log)];
  } finally {
    senders?.abort();
    await receivers.close();
  }
}

/** One endpoint in four misbehaves now and then; the others are those whose latency counts. */
function clusterAccounts(): DrillAccount[] {
  return drillAccounts(ENDPOINTS).map((account) => ({
    ...account,
    endpoints: account.endpoints.map((endpoint) => ({
      ...endpoint,
      kind: endpoint.index % 4 === 1 ? ('mixed' as const) : ('good' as const),
    })),
  }));
}

async function openReceivers(
  { network }: Installation,
  accounts: readonly DrillAccount[],
  taken: Set<string>,
): Promise<Receivers> {
  const kinds = accounts.flatMap(({ endpoints }) => endpoints.map(({ kind }) => kind));
  const onAccepted = ({ endpoint, content }: LoggedArrival) => taken.add(`${endpoint} ${content?.identity}`);
  const dripIntervalMs = WEBHOOK_TIMEOUT_MS / 32;
  return await startReceivers({ host: network.outside, seed: SEED, kinds, dripIntervalMs }, onAccepted);
}

async function addAccounts(
  { database, secretBox }: Installation,
  accounts: readonly DrillAccount[],
  urls: readonly string[],
): Promise<void> {
  const tools = { database, secretBox, actor: SYSTEM };
  for (const { wabaId, phoneNumberId, displayPhoneNumber, endpoints } of accounts) {
    const { userId } = await createTenant(tools, `Cluster ${wabaId}`);
    const phoneNumbers = [{ phoneNumberId, displayPhoneNumber, verifiedName: 'Cluster' }];
    await addWaba(tools, userId, { wabaId, phoneNumbers, accessToken: null });
    for (const { index, kind, eventTypes } of endpoints) {
      await storeEndpoint(tools, wabaId, { url: urls[index] ?? '', description: kind, eventTypes });
    }
  }
}

async function countOpen({ database }: Installation): Promise<number> {
  const rows = await query<{ open: string }>(database, 'select count(*) as open from delivery_queue');
  return Number(rows[0]?.open);
}

/** Lets a fault happen; returns a row when that is not possible. */
async function suffer(
  installation: Installation,
  fault: Fault,
  log: (line: string) => void,
): Promise<Row | DoneFault> {
  const why = fault.cannotRun?.(installation) ?? null;
  if (why !== null) {
    return { scenario: fault.name, what: fault.about, figure: `not run: ${why}`, target: '', isMet: null };
  }
  await delay(CALM_MS.before);
  log(`${fault.name}: ${fault.about}`);
  const startMs = Date.now();
  try {
    await fault.run(installation, log);
  } catch (error) {
    const figure = `could not be carried out: ${(error as Error).message.split('\n', 1)[0]}`;
    return { scenario: fault.name, what: fault.about, figure, target: '', isMet: false };
  }
  const healedMs = Date.now();
  await delay(CALM_MS.after);
  // What was sent after this may still be on its way.
  return { fault, startMs, healedMs, endMs: Date.now() - LONGEST_HEALTHY_MS };
}

type Facts = { accounts: readonly DrillAccount[]; senders: Senders; arrivals: readonly LoggedArrival[] };

function faultRow(done: DoneFault, facts: Facts): Row {
  const { fault, startMs, healedMs, endMs } = done;
  const { events, backMs, slowestMs } = recoveryOf(done, facts);
  const refused = facts.senders.refusals.filter(({ atMs }) => atMs >= startMs && atMs < endMs);
  const isBack = backMs <= fault.targetSeconds * 1_000;
  const lasted = seconds(healedMs - startMs);
  const figures = [
    `back after ${seconds(backMs)} of ${lasted}`,
    `slowest ${seconds(slowestMs)}`,
    `${refused.length} not 200`,
  ];
  return {
    scenario: fault.name,
    what: fault.about,
    figure: `${figures.join(', ')}, ${events} events`,
    target: fault.noRefusal === true ? 'only 200' : `≤ ${fault.targetSeconds} s`,
    isMet: fault.noRefusal === true ? refused.length === 0 : isBack,
  };
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

/** What has to hold over all faults together. */
function wholeRows(
  { accounts, senders, arrivals }: Facts,
  done: readonly DoneFault[],
  left: number,
  log: (line: string) => void,
): Row[] {
  const offences = checkRun({ accounts, bodies: senders.bodies, arrivals });
  const disturbances = done.map(
    ({ startMs, endMs }): Disturbance => ({ reason: 'other part away', fromMs: startMs, toMs: endMs }),
  );
  const duplicates = findDuplicates(arrivals, disturbances, WEBHOOK_TIMEOUT_MS);
  const unexplained = duplicates.filter(({ reason }) => reason === 'unexplained');
  for (const [kind, list] of Object.entries(offences)) {
    for (const line of list.slice(0, 20)) log(`${kind}: ${line}`);
  }
  const row = (what: string, count: number): Row => ({
    scenario: 'faults',
    what,
    figure: String(count),
    target: '0',
    isMet: count === 0,
  });
  const acknowledged = senders.bodies.filter(({ acknowledgedTick }) => acknowledgedTick !== null);
  const events = acknowledged.reduce((sum, body) => sum + body.events.length, 0);
  const names: [string, keyof Offences][] = [
    ['lost', 'lost'],
    ['out of order by X-Service-Sequence', 'disordered'],
    ["out of upstream's order", 'misordered'],
    ['altered', 'altered'],
    ['doubled', 'doubled'],
    ['misdirected', 'misdirected'],
  ];
  return [
    ...names.map(([what, kind]) => row(`${what}, of ${events} events`, offences[kind].length)),
    row('still open at the end', left),
    row(`duplicates that no fault explains, of ${duplicates.length}`, unexplained.length),
  ];
}
