import type { RunPlan } from './run-plan.ts';
import type { ProductLayout } from './stack/product.ts';

/** Which of the receivers' endpoints bodies go to. */
export type Destination =
  | 'one'
  | 'another'
  | 'hundred'
  | 'wide'
  | 'slow'
  | 'fails-first'
  | 'fails-often'
  | 'bad';

/** What else comes in meanwhile; its latencies do not count. */
export type Noise = {
  to: Destination;
  body: RunPlan['body'];
  /** Bodies per second; null: as fast as they are taken. */
  ratePerSecond: number | null;
  count: number;
  /** Whether its events have to arrive too before the scenario is over. */
  hasToArrive: boolean;
};

/** What others would build with a kept library of jobs. */
export const PEERS = ['graphile-worker', 'bullmq'] as const;
export type PeerName = (typeof PEERS)[number];

export type Scenario = {
  name: string;
  about: string;
  /** `floor`: the bare loop instead of the product. */
  driver: 'upstream' | 'floor';
  /** Who takes the bodies in place of the product; null: nobody. */
  peer: PeerName | null;
  body: RunPlan['body'];
  to: Destination;
  /** Bodies per second; null: as fast as they are taken. */
  ratePerSecond: number | null;
  count: number;
  noise: Noise | null;
  layout: ProductLayout;
  /** API and worker are started anew for it; otherwise they have been idle for some seconds. */
  fresh: boolean;
};

const LAYOUT: ProductLayout = {
  deliveryWorkflows: 'auto',
  workers: 1,
  coresPerWorker: null,
  tracesPercent: 0,
};

const PLAIN = {
  driver: 'upstream',
  peer: null,
  body: 'message',
  to: 'one',
  noise: null,
  layout: LAYOUT,
  fresh: false,
} as const;

/** The same load for a peer. */
export function scenarioOfPeer(scenario: Scenario, peer: PeerName): Scenario {
  return { ...scenario, peer, name: `${scenario.name}/${peer}` };
}

type Pick = (full: number, short: number) => number;

/** All scenarios in the order in which they run: those that leave something behind come last. */
export function listScenarios(quick: boolean): Scenario[] {
  const pick = (full: number, short: number) => (quick ? short : full);
  return [
    ...freshScenarios(pick),
    ...rateScenarios(pick),
    ...floodScenarios(pick),
    {
      ...PLAIN,
      body: 'statuses',
      to: 'hundred',
      ratePerSecond: 100,
      name: 'statuses',
      about: 'sent, delivered and read of one message in one body, 100 bodies per second',
      count: 100 * pick(20, 3),
    },
    ...floorScenarios(pick),
    ...workerScenarios(pick),
    ...alwaysScenarios(pick),
    ...tracesScenarios(pick),
    ...neighbourScenarios(pick),
    wideScenario(pick),
  ];
}

/** A process that was just started has its code compiled by V8 while the events come. */
function freshScenarios(pick: Pick): Scenario[] {
  const fresh = { ...PLAIN, fresh: true } as const;
  const rates = [
    { ratePerSecond: 50, seconds: 20, quickSeconds: 4 },
    { ratePerSecond: 200, seconds: 20, quickSeconds: 4 },
    { ratePerSecond: 800, seconds: 15, quickSeconds: 3 },
  ];
  return [
    ...rates.map(({ ratePerSecond, seconds, quickSeconds }) => ({
      ...fresh,
      ratePerSecond,
      name: `fresh-${ratePerSecond}`,
      about: `${ratePerSecond} messages per second, the first the product has ever seen`,
      count: ratePerSecond * pick(seconds, quickSeconds),
    })),
    {
      ...fresh,
      ratePerSecond: 3_000,
      name: 'fresh-burst',
      about: '300 messages within 100 ms, the first the product has ever seen',
      count: 300,
    },
  ];
}

const ONE_OR_MANY = ['one', 'hundred'] as const;

/** Per second, to one endpoint. Where batches of one body follow each other, latency has a hump between two of them. */
const RATES_BETWEEN = [100, 150, 250, 300, 400];

const suffix = (to: Destination) => (to === 'hundred' ? '-x100' : '');

function rateScenarios(pick: Pick): Scenario[] {
  const rates = [
    { ratePerSecond: 10, seconds: 30, quickSeconds: 2 },
    { ratePerSecond: 50, seconds: 20, quickSeconds: 2 },
    { ratePerSecond: 200, seconds: 20, quickSeconds: 4 },
    { ratePerSecond: 800, seconds: 15, quickSeconds: 3 },
  ];
  return [
    {
      ...PLAIN,
      ratePerSecond: 3_000,
      name: 'burst',
      about: '300 messages within 100 ms after silence',
      count: 300,
    },
    ...rates.flatMap(({ ratePerSecond, seconds, quickSeconds }) =>
      ONE_OR_MANY.map((to) => ({
        ...PLAIN,
        to,
        ratePerSecond,
        name: `message-${ratePerSecond}${suffix(to)}`,
        about: `${ratePerSecond} messages per second`,
        count: ratePerSecond * pick(seconds, quickSeconds),
      })),
    ),
    ...RATES_BETWEEN.map((ratePerSecond) => ({
      ...PLAIN,
      ratePerSecond,
      name: `message-${ratePerSecond}`,
      about: `${ratePerSecond} messages per second`,
      count: ratePerSecond * pick(15, 4),
    })),
    ...ONE_OR_MANY.map((to) => ({
      ...PLAIN,
      to,
      ratePerSecond: 1_200,
      name: `sustained${suffix(to)}`,
      about: '1200 messages per second: held when backlog stays near 0',
      count: 1_200 * pick(20, 3),
    })),
  ];
}

function floodScenarios(pick: Pick): Scenario[] {
  return ONE_OR_MANY.map((to) => ({
    ...PLAIN,
    to,
    ratePerSecond: null,
    name: `flood${suffix(to)}`,
    about: 'messages as fast as the ingress takes them',
    count: pick(20_000, 4_000),
  }));
}

function floorScenarios(pick: Pick): Scenario[] {
  const floor = { ...PLAIN, driver: 'floor' } as const;
  return [
    {
      ...floor,
      ratePerSecond: 200,
      name: 'floor-200',
      about: 'insert a row, POST, update the row: 200 per second',
      count: 200 * pick(15, 2),
    },
    {
      ...floor,
      ratePerSecond: null,
      name: 'floor',
      about: 'insert a row, POST, update the row: as fast as it goes',
      count: pick(20_000, 4_000),
    },
  ];
}

/** What more worker processes give, and what they cost. All are freshly started, so that they differ in nothing else. */
function workerScenarios(pick: Pick): Scenario[] {
  const flood = { ...PLAIN, ratePerSecond: null, fresh: true } as const;
  const numbered = (workers: number) => (workers === 1 ? '1 worker process' : `${workers} worker processes`);
  return [
    ...([1, 4] as const).map((workers) => ({
      ...flood,
      layout: { ...LAYOUT, workers },
      name: `workers-${workers}`,
      about: `a flood with ${numbered(workers)}`,
      count: pick(5_000, 3_000),
    })),
    ...([1, 2] as const).map((workers) => ({
      ...flood,
      to: 'slow' as const,
      layout: { ...LAYOUT, workers },
      name: `workers-${workers}-slow`,
      about: `a receiver that takes a second for each webhook, ${numbered(workers)}`,
      count: pick(1_500, 600),
    })),
    ...([1, 2] as const).map((workers) => ({
      ...flood,
      layout: { ...LAYOUT, workers, coresPerWorker: 0.5 },
      name: `workers-${workers}-capped`,
      about: `a flood with ${numbered(workers)}, each with half a core at most`,
      count: pick(5_000, 1_500),
    })),
  ];
}

function alwaysScenarios(pick: Pick): Scenario[] {
  const always = { ...PLAIN, layout: { ...LAYOUT, deliveryWorkflows: 'always' } } as const;
  return [
    {
      ...always,
      ratePerSecond: 10,
      name: 'always-10',
      about: 'one workflow per delivery, 10 messages per second',
      count: 10 * pick(20, 3),
    },
    {
      ...always,
      ratePerSecond: null,
      name: 'always-flood',
      about: 'one workflow per delivery: its ceiling',
      count: pick(600, 100),
    },
  ];
}

/** What traces cost: the same flow on processes that differ in nothing else. */
function tracesScenarios(pick: Pick): Scenario[] {
  return ([0, 10, 100] as const).map((tracesPercent) => ({
    ...PLAIN,
    fresh: true,
    layout: { ...LAYOUT, tracesPercent },
    name: `traces-${tracesPercent}`,
    about: `200 messages per second, ${tracesPercent} % of them traced`,
    ratePerSecond: 200,
    count: 200 * pick(20, 4),
  }));
}

/** What others' trouble does to a tenant. */
function neighbourScenarios(pick: Pick): Scenario[] {
  const badSeconds = pick(20, 3);
  const stormSeconds = pick(45, 12);
  return [
    {
      ...PLAIN,
      ratePerSecond: 20,
      name: 'noisy-waba',
      about: '20 messages per second while another WABA sends 30,000 as fast as they are taken',
      count: 20 * pick(15, 6),
      noise: {
        to: 'another',
        body: 'message',
        ratePerSecond: null,
        count: pick(30_000, 6_000),
        hasToArrive: true,
      },
    },
    {
      ...PLAIN,
      to: 'hundred',
      ratePerSecond: 200,
      name: 'bad-endpoints',
      about: '200 messages per second, and 40 more to endpoints that misbehave',
      count: 200 * badSeconds,
      noise: { to: 'bad', body: 'message', ratePerSecond: 40, count: 40 * badSeconds, hasToArrive: false },
    },
    {
      ...PLAIN,
      to: 'fails-first',
      ratePerSecond: 1,
      name: 'retry-storm',
      about: 'each first attempt is refused, 1 message per second; another tenant refuses 60 % of 100',
      count: stormSeconds,
      noise: {
        to: 'fails-often',
        body: 'message',
        ratePerSecond: 100,
        count: 100 * stormSeconds,
        hasToArrive: false,
      },
    },
  ];
}

/** What one WABA with many endpoints does to the acknowledgements of another. */
function wideScenario(pick: Pick): Scenario {
  return {
    ...PLAIN,
    ratePerSecond: 50,
    name: 'wide-waba',
    about: '50 messages per second while 12 bodies of 200 statuses go to 100 endpoints of another WABA',
    count: 50 * pick(20, 6),
    noise: {
      to: 'wide',
      body: '200 statuses',
      ratePerSecond: null,
      count: pick(12, 3),
      hasToArrive: false,
    },
  };
}
