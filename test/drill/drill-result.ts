import packageJson from '../../package.json' with { type: 'json' };
import type { DrillAccount } from './accounts.ts';
import { checkRun, expectedAt, type Offences } from './check-run.ts';
import type { Leftovers } from './drain.ts';
import { type DuplicateReason, disturbancesOf, findDuplicates } from './duplicates.ts';
import type { NemesisEvent } from './nemesis.ts';
import type { LoggedArrival } from './receivers.ts';
import type { SentBody } from './senders.ts';
import { WEBHOOK_TIMEOUT_MS } from './stack.ts';

/** What a run leaves for the report. */
export type Timeline = { startedMs: number; readyMs: number; calmMs: number; drainedMs: number };

export type Crash = { atMs: number; part: string; how: string };

export type DrillOptions = {
  kills: number;
  /** For how much of the time Temporal is away, beside the kills. */
  temporalAwayPercent: number;
  seed: number;
  /** At least so many events; the senders go on for as long as the nemesis does. */
  events: number;
  endpoints: number;
  eventsPerSecond: number;
  /** API and first worker as `heliograph-server all`, or apart. */
  processes: 'one' | 'two';
  /** How long the last deliveries may take once everything is up. */
  drainTimeoutMs: number;
};

/** The JSON of a run. Times are in seconds since the stack was ready. */
export type DrillResult = {
  ok: boolean;
  seed: number;
  options: DrillOptions;
  startedAt: string;
  versions: { heliograph: string; node: string };
  seconds: { start: number; storm: number; drain: number; temporalAway: number };
  counts: {
    kills: number;
    pauses: number;
    /** How often Temporal was made to be away beside those. */
    beside: number;
    crashes: number;
    bodiesSent: number;
    bodiesAcknowledged: number;
    bodiesSentAgain: number;
    bodiesRepeated: number;
    eventsAcknowledged: number;
    deliveriesExpected: number;
    arrivals: number;
    taken: number;
    answers: Record<string, number>;
    duplicates: number;
    duplicatesByReason: Partial<Record<DuplicateReason, number>>;
    lost: number;
    orderViolations: number;
    altered: number;
    doubled: number;
    misdirected: number;
    missingAtTheEnd: number;
    openDeliveriesAtTheEnd: number;
  };
  killsByTarget: Record<string, number>;
  nemesis: {
    n: number | null;
    second: number;
    target: string;
    deed: string;
    pid: number | null;
    awaySeconds: number;
  }[];
  crashes: { second: number; part: string; how: string }[];
  offences: Offences;
  unexplainedDuplicates: string[];
};

type Facts = {
  options: DrillOptions;
  accounts: readonly DrillAccount[];
  bodies: readonly SentBody[];
  arrivals: readonly LoggedArrival[];
  events: readonly NemesisEvent[];
  crashes: readonly Crash[];
  left: Leftovers;
  timeline: Timeline;
};

const MAX_LISTED = 200;
/** A part that ended by itself is away for about so long. */
const CRASH_AWAY_MS = 3_000;

/** Judges a run. */
export function resultOf(facts: Facts): DrillResult {
  const { options, events, crashes, left, timeline } = facts;
  const offences = checkRun(facts);
  const disturbances = [
    ...disturbancesOf(events),
    ...crashes.map(({ atMs }) => ({
      reason: 'part crashed' as const,
      fromMs: atMs,
      toMs: atMs + CRASH_AWAY_MS,
    })),
  ];
  const duplicates = findDuplicates(facts.arrivals, disturbances, WEBHOOK_TIMEOUT_MS);
  const second = (atMs: number) => rounded(atMs - timeline.readyMs);
  const clean = Object.values(offences).every((list) => list.length === 0);
  return {
    ok: clean && left.missing === 0 && left.openDeliveries === 0,
    seed: options.seed,
    options,
    startedAt: new Date(timeline.startedMs).toISOString(),
    versions: { heliograph: packageJson.version, node: process.version },
    seconds: {
      start: rounded(timeline.readyMs - timeline.startedMs),
      storm: rounded(timeline.calmMs - timeline.readyMs),
      drain: rounded(timeline.drainedMs - timeline.calmMs),
      temporalAway: rounded(awayMs(events.filter(({ target }) => target === 'temporal'))),
    },
    counts: {
      ...countsOf(facts, offences),
      duplicates: duplicates.length,
      duplicatesByReason: tally(duplicates.map(({ reason }) => reason)),
    },
    killsByTarget: tally(events.map(({ deed, target }) => `${deed} ${target}`)),
    nemesis: [...events]
      .sort((a, b) => a.atMs - b.atMs)
      .map(({ n, atMs, target, deed, pid, awayMs }) => {
        return { n, second: second(atMs), target, deed, pid, awaySeconds: rounded(awayMs) };
      }),
    crashes: crashes.map(({ atMs, part, how }) => ({ second: second(atMs), part, how })),
    offences: Object.fromEntries(
      Object.entries(offences).map(([name, list]) => [name, list.slice(0, MAX_LISTED)]),
    ) as Offences,
    unexplainedDuplicates: duplicates
      .filter(({ reason }) => reason === 'unexplained')
      .slice(0, MAX_LISTED)
      .map(({ arrival }) => {
        const { endpoint, content, attempt, arrivedMs } = arrival;
        return `endpoint ${endpoint}: ${content?.identity}, attempt ${attempt}, second ${second(arrivedMs)}`;
      }),
  };
}

function countsOf({ accounts, bodies, arrivals, events, crashes, left }: Facts, offences: Offences) {
  const acknowledged = bodies.filter((body) => body.acknowledgedTick !== null);
  const planned = events.filter(({ n }) => n !== null);
  const pauses = planned.filter(({ deed }) => deed === 'pause').length;
  const expected = accounts.flatMap(({ wabaId, endpoints }) => {
    const own = bodies.filter((body) => body.wabaId === wabaId);
    return endpoints.map((endpoint) => expectedAt(endpoint, own).length);
  });
  return {
    kills: planned.length - pauses,
    pauses,
    beside: events.length - planned.length,
    crashes: crashes.length,
    bodiesSent: bodies.length,
    bodiesAcknowledged: acknowledged.length,
    bodiesSentAgain: bodies.filter(({ tries, repeated }) => tries > (repeated ? 2 : 1)).length,
    bodiesRepeated: bodies.filter(({ repeated }) => repeated).length,
    eventsAcknowledged: acknowledged.reduce((sum, body) => sum + body.events.length, 0),
    deliveriesExpected: expected.reduce((sum, count) => sum + count, 0),
    arrivals: arrivals.length,
    taken: arrivals.filter(({ accepted }) => accepted).length,
    answers: tally(arrivals.map(({ answer }) => answer)),
    lost: offences.lost.length,
    orderViolations: offences.disordered.length + offences.misordered.length,
    altered: offences.altered.length,
    doubled: offences.doubled.length,
    misdirected: offences.misdirected.length,
    missingAtTheEnd: left.missing,
    openDeliveriesAtTheEnd: left.openDeliveries,
  };
}

function awayMs(events: readonly NemesisEvent[]): number {
  return events.reduce((sum, event) => sum + event.awayMs, 0);
}

function tally<T extends string>(values: readonly T[]): Record<T, number> {
  const counts = {} as Record<T, number>;
  for (const value of [...values].sort()) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}

function rounded(ms: number): number {
  return Math.round(ms / 100) / 10;
}
