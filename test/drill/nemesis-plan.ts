import { seededDice } from '../support/seeded-dice.ts';

/** What can be killed or frozen. `worker-1` and `worker-2` are two processes of one kind; `all` is `api` and `worker-1` in one. */
export type Target = 'all' | 'api' | 'worker-1' | 'worker-2' | 'temporal' | 'postgres' | 'minio';

/**
 * `kill` is kill -9 of the process. PostgreSQL has two more forms: `kill-tree` takes the postmaster with all its
 * backends, `kill-backend` one backend, after which the postmaster restarts all of them.
 */
export type Deed = 'kill' | 'kill-tree' | 'kill-backend' | 'pause';

export type NemesisStep = {
  /** Wait after the step before. */
  afterMs: number;
  target: Target;
  deed: Deed;
  /** How long a killed process is left dead before it is started again, and a paused one stays frozen. */
  awayMs: number;
};

export type NemesisOptions = {
  seed: number;
  kills: number;
  /** Whether API and first worker are one process. */
  processes: 'one' | 'two';
  /** The first of a pause's bounds lies above this: longer than a lease, so that others take over. */
  leaseMs: number;
};

const KILL_WEIGHTS: readonly (readonly [Target, number])[] = [
  ['worker-1', 5],
  ['worker-2', 5],
  ['postgres', 5],
  ['api', 4],
  ['temporal', 3],
  ['minio', 2],
];
const PAUSE_WEIGHTS: readonly (readonly [Target, number])[] = [
  ['worker-1', 4],
  ['worker-2', 4],
  ['temporal', 1],
  ['api', 1],
];
/** One pause on so many kills. */
const KILLS_PER_PAUSE = 4;

/** The steps of a run: `kills` kills with a pause after every fourth, the same for the same seed. */
export function nemesisPlan({ seed, kills, leaseMs, processes }: NemesisOptions): NemesisStep[] {
  const dice = seededDice(seed);
  const isAll = (target: Target) => processes === 'one' && (target === 'api' || target === 'worker-1');
  const chosen = (weights: readonly (readonly [Target, number])[]) => {
    const target = pick(weights, dice());
    return isAll(target) ? 'all' : target;
  };
  const between = (low: number, high: number) => Math.round(low + dice() * (high - low));
  const steps: NemesisStep[] = [];
  for (let n = 1; n <= kills; n += 1) {
    const target = chosen(KILL_WEIGHTS);
    const deed = target === 'postgres' ? postgresDeed(dice()) : 'kill';
    steps.push({ afterMs: between(800, 3_500), target, deed, awayMs: between(50, 2_500) });
    if (n % KILLS_PER_PAUSE !== 0) continue;
    const awayMs = between(leaseMs + 500, leaseMs + 3_500);
    steps.push({ afterMs: between(800, 2_500), target: chosen(PAUSE_WEIGHTS), deed: 'pause', awayMs });
  }
  return steps;
}

function pick<T>(weighted: readonly (readonly [T, number])[], roll: number): T {
  const total = weighted.reduce((sum, [, weight]) => sum + weight, 0);
  let left = roll * total;
  for (const [value, weight] of weighted) {
    left -= weight;
    if (left < 0) return value;
  }
  throw new Error('a roll of the dice is below 1');
}

function postgresDeed(roll: number): Deed {
  if (roll < 0.4) return 'kill';
  return roll < 0.75 ? 'kill-tree' : 'kill-backend';
}

/** Bounds of the spans in which Temporal is away: mostly longer than a lease, and than the grace of a run. */
const TEMPORAL_AWAY_MS = { least: 1_000, most: 12_000 };

/**
 * What is done to Temporal alone, beside the plan: it is away for `awayPercent` of the time, in spans of random length.
 * As often frozen as killed: a frozen server keeps its connections, a killed one forgets what it had not written.
 */
export function* temporalSteps({ seed, awayPercent }: TemporalOptions): Generator<NemesisStep, never> {
  const dice = seededDice(seed ^ 0x7e3);
  for (;;) {
    const awayMs = Math.round(
      TEMPORAL_AWAY_MS.least + dice() * (TEMPORAL_AWAY_MS.most - TEMPORAL_AWAY_MS.least),
    );
    const deed = dice() < 0.5 ? ('pause' as const) : ('kill' as const);
    const afterMs = Math.round((awayMs * (100 - awayPercent)) / awayPercent);
    yield { afterMs, target: 'temporal', deed, awayMs };
  }
}

export type TemporalOptions = { seed: number; awayPercent: number };
