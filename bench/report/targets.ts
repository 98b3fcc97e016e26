import { FIRST_RETRY_AT_MOST_MS } from '../stack/settings.ts';
import type { Figures } from './figures.ts';

/** What a figure should be. */
type Target = {
  about: string;
  unit: string;
  /** Undefined when a scenario that it takes has not run. */
  of: (scenario: Lookup) => number | undefined;
} & ({ atMost: number } | { atLeast: number });

type Lookup = (name: string) => Figures | undefined;

const p50 = (name: string) => (get: Lookup) => get(name)?.latencyMs.p50;
const p95 = (name: string) => (get: Lookup) => get(name)?.latencyMs.p95;
const ackP95 = (name: string) => (get: Lookup) => get(name)?.acknowledgementMs.p95;
const throughput = (name: string) => (get: Lookup) => get(name)?.eventsPerSecond;
const postgresCpu = (name: string) => (get: Lookup) => get(name)?.cpuMsPerEvent.postgres;

type Of = Target['of'];
const ratio = (of: Of, to: Of) => (get: Lookup) => {
  const [one, other] = [of(get), to(get)];
  return one === undefined || other === undefined ? undefined : one / other;
};

const overMany = (name: string): Target => ({
  about: `${name} over 100 endpoints: p95 beside that of one`,
  of: ratio(p95(`${name}-x100`), p95(name)),
  atMost: 1.2,
  unit: 'times',
});

const moreWorkers = (about: string, one: string, more: string, atLeast: number): Target => ({
  about,
  of: ratio(throughput(more), throughput(one)),
  atLeast,
  unit: 'times',
});

/** Where one batch follows another, latency must not have a hump. */
const noHump = (rate: number): Target => ({
  about: `${rate} per second: p50 beside that of 50 per second`,
  of: ratio(p50(`message-${rate}`), p50('message-50')),
  atMost: 1.2,
  unit: 'times',
});

/** CPU of the product and PostgreSQL together. */
const cpu = (name: string): Of => {
  const parts = ['api', 'worker', 'all', 'postgres'];
  return (get) => {
    const spent = get(name)?.cpuMsPerEvent;
    return spent?.postgres === undefined
      ? undefined
      : parts.reduce((sum, part) => sum + (spent[part] ?? 0), 0);
  };
};

const TARGETS: readonly Target[] = [
  { about: '200 per second: p50', of: p50('message-200'), atMost: 2.5, unit: 'ms' },
  { about: '200 per second: p95', of: p95('message-200'), atMost: 5, unit: 'ms' },
  { about: '200 per second: CPU per event', of: cpu('message-200'), atMost: 2.2, unit: 'ms' },
  ...[100, 150, 200, 250, 300, 400].map(noHump),
  { about: '200 per second on a fresh process: p50', of: p50('fresh-200'), atMost: 3, unit: 'ms' },
  { about: '200 per second on a fresh process: p95', of: p95('fresh-200'), atMost: 6, unit: 'ms' },
  { about: '800 per second from silence: p95', of: p95('message-800'), atMost: 25, unit: 'ms' },
  { about: '800 per second on a fresh process: p95', of: p95('fresh-800'), atMost: 50, unit: 'ms' },
  { about: '1,200 per second: p95', of: p95('sustained'), atMost: 30, unit: 'ms' },
  overMany('message-200'),
  overMany('message-800'),
  overMany('sustained'),
  { about: 'statuses: p95', of: p95('statuses'), atMost: 12, unit: 'ms' },
  { about: 'beside bad endpoints: p95', of: p95('bad-endpoints'), atMost: 12, unit: 'ms' },
  {
    about: 'beside bad endpoints: p95 beside that without them',
    of: ratio(p95('bad-endpoints'), p95('message-200-x100')),
    atMost: 2,
    unit: 'times',
  },
  { about: 'beside 30,000 bodies of another WABA: p95', of: p95('noisy-waba'), atMost: 60, unit: 'ms' },
  {
    about: 'beside 240,000 deliveries of another WABA: p95 of acknowledgements beside that of 50 per second',
    of: ratio(ackP95('wide-waba'), ackP95('message-50')),
    atMost: 4,
    unit: 'times',
  },
  {
    about: "beside another's retry storm: p95 of the second attempt's lateness",
    of: retryLatenessMs,
    atMost: 10_000,
    unit: 'ms',
  },
  { about: 'always: p50 at 10 per second', of: p50('always-10'), atMost: 20, unit: 'ms' },
  { about: 'always: its ceiling', of: throughput('always-flood'), atLeast: 60, unit: 'per s' },
  {
    about: 'flood beside the floor',
    of: ratio(throughput('flood'), throughput('floor')),
    atLeast: 0.8,
    unit: 'times',
  },
  moreWorkers('four workers: throughput beside one', 'workers-1', 'workers-4', 0.95),
  {
    about: 'four workers: CPU of PostgreSQL per event beside one',
    of: ratio(postgresCpu('workers-4'), postgresCpu('workers-1')),
    atMost: 1.1,
    unit: 'times',
  },
  moreWorkers('two workers, slow receiver: throughput beside one', 'workers-1-slow', 'workers-2-slow', 1.8),
  moreWorkers('two workers, half a core each: beside one', 'workers-1-capped', 'workers-2-capped', 1.8),
  {
    about: 'API and worker at rest',
    of: (get) => get('fresh-50')?.productAtRestMib,
    atMost: 375,
    unit: 'MiB',
  },
  {
    about: 'API and worker in the flood',
    of: (get) => get('flood')?.productPeakMib,
    atMost: 400,
    unit: 'MiB',
  },
];

/** Beyond the longest that the schedule allows. */
function retryLatenessMs(get: Lookup): number | undefined {
  const figures = get('retry-storm');
  return figures === undefined ? undefined : Math.max(0, figures.retriedAfterMs.p95 - FIRST_RETRY_AT_MOST_MS);
}

/** A target beside what was measured. */
export type JudgedTarget = {
  about: string;
  wanted: string;
  measured: string;
  isMet: boolean;
};

/** Those whose scenarios have run. */
export function judgeTargets(all: readonly Figures[]): JudgedTarget[] {
  const get: Lookup = (name) => all.find(({ scenario }) => scenario === name);
  return TARGETS.flatMap((target) => {
    const value = target.of(get);
    if (value === undefined) return [];
    const isUpper = 'atMost' in target;
    const limit = isUpper ? target.atMost : target.atLeast;
    return [
      {
        about: target.about,
        wanted: `${isUpper ? 'at most' : 'at least'} ${limit} ${target.unit}`,
        measured: `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${target.unit}`,
        isMet: isUpper ? value <= limit : value >= limit,
      },
    ];
  });
}
