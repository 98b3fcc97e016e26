import type { SignedBody } from '../../engine/inbox/bodies.ts';
import { SHARDS } from '../../engine/inbox/shards.ts';
import { keepAndIngest, type UnderWay, type Ways } from './direct-attempt.ts';
import type { IntakeLoop } from './intake-loop.ts';
import type { IntakeTools } from './intake-tools.ts';
import { type Batch, batchOf, MOST, readPlain } from './plain-bodies.ts';
import type { KeepAtOnce } from './store-bodies.ts';

/**
 * The sender waits meanwhile: what takes longer is kept as it is and ingested later. Where the disk is slow that is a second
 * write behind the first, so only a lock that another has is given up early.
 */
type Patience = { wholeMs: number; locksMs: number; longestRestMs: number };
const PATIENCE: Patience = { wholeMs: 1_000, locksMs: 250, longestRestMs: 1_000 };

/**
 * A shard rests for so many times what an attempt in vain took, as its bodies are sent twice. A WABA does not lose the fast way for
 * long by one slow moment.
 */
const REST_TIMES = 10;

/** For a process that is both ingress and worker. */
export function makeDirectIntake(tools: IntakeTools, loop: IdleLoop, patience = PATIENCE): KeepAtOnce {
  const intake = new IntakeBesideIngress(tools, loop, patience);
  return (bodies, onSent, stored) => intake.attempt(bodies, onSent, stored);
}

/** Bodies of a shard that the loop works on would be written, and undone because older ones wait. */
type IdleLoop = Pick<IntakeLoop, 'isIdle'>;

class IntakeBesideIngress {
  readonly #tools: IntakeTools;
  readonly #loop: IdleLoop;
  readonly #patience: Patience;
  readonly #restsUntilMs = new Map<number, number>();
  readonly #underWay = new Set<UnderWay>();

  constructor(tools: IntakeTools, loop: IdleLoop, patience: Patience) {
    this.#tools = tools;
    this.#loop = loop;
    this.#patience = patience;
  }

  attempt(
    bodies: readonly SignedBody[],
    onSent: () => void,
    stored?: Promise<unknown>,
  ): ReturnType<KeepAtOnce> {
    // More bodies than one of these transactions takes are not even read.
    const { plain, left } =
      bodies.length > MOST.bodies
        ? { plain: [], left: SHARDS }
        : readPlain(bodies, this.#tools.memory.customers, (shard) => this.#isPossible(shard));
    const isTried = new Set(plain.map(({ signed }) => signed));
    const usual = bodies.filter((body) => !isTried.has(body));
    const isKept = Promise.resolve(false);
    if (left.length > 0 && stored !== undefined) this.#note({ shards: left, isUsual: true, isKept }, stored);
    if (plain.length === 0) return { usual, tried: [], isKept: Promise.resolve(true) };
    const batch = batchOf(plain);
    const isOfSame = ({ shards }: UnderWay) => shards.some((shard) => batch.shards.includes(shard));
    const before = [...this.#underWay].filter(isOfSame);
    const own: UnderWay = { shards: batch.shards, isUsual: false, isKept };
    const attempt = this.#keep(batch, { before, onSent });
    own.isKept = attempt.isKept.then((kept) => {
      own.isUsual = !kept;
      return kept;
    });
    this.#note(own, Promise.all([stored ?? own.isKept, attempt.ended]));
    return { usual, tried: [...isTried], isKept: own.isKept };
  }

  #note(bodies: UnderWay, until: Promise<unknown>): void {
    this.#underWay.add(bodies);
    void until.finally(() => this.#underWay.delete(bodies));
  }

  #isPossible(shard: number): boolean {
    const isUsual = [...this.#underWay].some((one) => one.isUsual && one.shards.includes(shard));
    const rests = performance.now() < (this.#restsUntilMs.get(shard) ?? 0);
    return !isUsual && !rests && this.#loop.isIdle(shard);
  }

  /** An attempt that takes too long goes on after it counts as not kept, until `ended`. */
  #keep(batch: Batch, given: Omit<Ways, 'waitMs'>) {
    const startMs = performance.now();
    const late = Promise.withResolvers<false>();
    const timeout = setTimeout(() => late.resolve(false), this.#patience.wholeMs);
    const ended = keepAndIngest(this.#tools, batch, { ...given, waitMs: this.#patience.locksMs });
    const isKept = Promise.race([ended, late.promise]).then((kept) => {
      clearTimeout(timeout);
      const nowMs = performance.now();
      const restMs = kept ? 0 : Math.min(this.#patience.longestRestMs, REST_TIMES * (nowMs - startMs));
      for (const shard of batch.shards) this.#restsUntilMs.set(shard, nowMs + restMs);
      return kept;
    });
    return { isKept, ended };
  }
}
