import { findOldestBodies, HAS_BODIES } from '../../engine/inbox/bodies.ts';
import { SHARDS } from '../../engine/inbox/shards.ts';
import type { Loop, LoopStatus, WorkWatch } from '../../platform/loop.ts';
import { ASIDE_POLL_MS, IDLE_POLL_MS, LOOPS } from '../../platform/loops.ts';
import { takeInShards } from './intake-batch.ts';
import type { IntakeTools } from './intake-tools.ts';
import { lookOf } from './shard-memory.ts';

/** A body that waited for so long is ingested, whichever worker its shard is for. */
const OVERDUE_MS = 1_000;

/**
 * When the transactions under way have taken this long, another one begins beside them. One for all that is new keeps
 * the cost per body low; one with a backlog leaves the machine to others.
 */
const PATIENCE_MS = { together: 25, alone: 250 };

/** Side by side, so that what hangs holds up few. One is left for shards without a backlog. */
const MOST_TURNS = { together: 4, alone: 3 };

const BACK_OFF = { firstMs: 250, longestMs: 5_000 };

/** Which part of the shards a worker is for: those that leave `rank` when divided by `count`. */
export type WorkerShare = {
  rank: number;
  count: number;
  /** It looks at the shards of the others too; workers that know another leader look seldom, and wait for notifications. */
  isLeader?: boolean;
};

export type IntakeLoop = Loop & {
  /** Nothing of the shard waits or is being ingested, as far as this process knows. */
  isIdle(shard: number): boolean;
  /** Bodies came for these shards, as a notification names them; for any when it names none. */
  notified(payload: string): void;
};

type Kind = keyof typeof PATIENCE_MS;
type Turn = { kind: Kind; startMs: number; ended: Promise<void> };

/**
 * Ingests upstream bodies as they arrive. In every worker process; one at a time ingests a shard. Shards without a
 * backlog share a transaction; one with a backlog, or in trouble, has its own, so that it delays no other.
 */
export function startIntake(
  tools: IntakeTools,
  share: () => WorkerShare = () => ALONE,
  watch?: WorkWatch,
): IntakeLoop {
  const loop = new Intake(tools, share, watch);
  loop.wake();
  return loop;
}

const ALONE: WorkerShare = { rank: 0, count: 1 };

class Intake implements IntakeLoop {
  readonly name = 'intake';
  readonly #tools: IntakeTools;
  readonly #share: () => WorkerShare;
  /** Shards that may have bodies, the one that waited longest first. */
  readonly #wanted = new Set<number>();
  readonly #busy = new Set<number>();
  readonly #turns = new Set<Turn>();
  readonly #backOff = new Map<number, { untilMs: number; pauseMs: number }>();
  readonly #poll: NodeJS.Timeout;
  readonly #watched: ReturnType<WorkWatch['add']> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | null = null;
  #nextLookMs = 0;
  #lookedAtMs = performance.now();
  #failingFromMs: number | null = null;
  #stopping = false;

  constructor(tools: IntakeTools, share: () => WorkerShare, watch: WorkWatch | undefined) {
    this.#tools = tools;
    this.#share = share;
    this.#watched = watch?.add({ name: this.name, wake: () => this.#lookNow() }, HAS_BODIES);
    this.#poll = setInterval(() => this.#lookIfDue(), LOOPS.intake.pollMs);
  }

  #lookNow(): void {
    this.#watched?.woken();
    this.#lookIfDue();
  }

  #lookIfDue(): void {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
  }

  wake(): void {
    this.notified('');
  }

  notified(payload: string): void {
    this.#watched?.woken();
    const { rank, count } = this.#share();
    const named = payload === '' ? SHARDS : payload.split(',').map(Number);
    for (const shard of named) if (shard % count === rank) this.#wanted.add(shard);
    this.#schedule();
  }

  /** Looks go on beside turns; of those the longest counts. */
  status(): LoopStatus {
    const nowMs = performance.now();
    const beganMs = Math.min(nowMs, ...[...this.#turns].map(({ startMs }) => startMs));
    const lookMs = this.#looking === null ? 0 : nowMs - this.#lookedAtMs;
    const failingMs = this.#failingFromMs === null ? 0 : nowMs - this.#failingFromMs;
    return { turnMs: Math.max(lookMs, nowMs - beganMs), sinceTurnMs: nowMs - this.#lookedAtMs, failingMs };
  }

  isIdle(shard: number): boolean {
    return !this.#wanted.has(shard) && !this.#busy.has(shard);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#poll);
    clearTimeout(this.#timer);
    await this.#looking;
    await Promise.all([...this.#turns].map(({ ended }) => ended));
  }

  /** Looks where notifications were lost, or the worker of a shard died or has more than it can do. */
  async #look(): Promise<void> {
    const startMs = performance.now();
    const { rank, count, isLeader } = this.#share();
    const isAside = isLeader === false && count > 1;
    const leastRestMs = this.#watched?.isIdle() === true ? IDLE_POLL_MS : isAside ? ASIDE_POLL_MS : 0;
    if (startMs < Math.max(this.#nextLookMs, this.#lookedAtMs + leastRestMs)) return;
    const { database, memory } = this.#tools;
    const looks = SHARDS.map((shard) => lookOf(memory.of(shard)));
    try {
      const oldest = new Map((await findOldestBodies(database, looks)).map((row) => [row.shard, row]));
      const tookMs = performance.now() - startMs;
      for (const shard of SHARDS) {
        const body = oldest.get(shard);
        memory
          .of(shard)
          .floor.looked({ tookMs, ids: body === undefined ? [] : [body.id], firstDay: body?.day ?? null });
        const isMine = shard % count === rank || (body?.waitedMs ?? 0) > OVERDUE_MS;
        if (body !== undefined && isMine) this.#wanted.add(shard);
      }
    } catch {
      // The next turn reports it.
      this.wake();
    }
    // Looks may take half of the time.
    const endMs = performance.now();
    this.#lookedAtMs = endMs;
    this.#nextLookMs = endMs + (endMs - startMs);
    this.#schedule();
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#stopping) return;
    const idle = [...this.#wanted].filter((shard) => !this.#busy.has(shard));
    const nowMs = performance.now();
    const ready = idle.filter((shard) => this.#readyMs(shard) <= nowMs);
    const alone = ready.filter((shard) => this.#isAlone(shard));
    const together = ready.filter((shard) => !this.#isAlone(shard));
    const laterMs = [
      this.#begin('together', together),
      this.#begin('alone', alone.slice(0, 1)),
      ...idle.map((shard) => this.#readyMs(shard)),
    ].filter((atMs) => atMs > nowMs && Number.isFinite(atMs));
    if (laterMs.length > 0)
      this.#timer = setTimeout(() => this.#schedule(), Math.min(...laterMs) - nowMs + 1);
  }

  #isAlone(shard: number): boolean {
    return this.#tools.memory.of(shard).pace.afterWabaId() !== null;
  }

  #readyMs(shard: number): number {
    return this.#backOff.get(shard)?.untilMs ?? 0;
  }

  /** Returns when the next turn of the kind may begin; Infinity: when one has ended. */
  #begin(kind: Kind, shards: readonly number[]): number {
    if (shards.length === 0 || this.#turns.size >= MOST_TURNS[kind]) return Number.POSITIVE_INFINITY;
    const begunMs = [...this.#turns].filter((turn) => turn.kind === kind).map(({ startMs }) => startMs);
    const mayMs = Math.max(0, ...begunMs) + (begunMs.length === 0 ? 0 : PATIENCE_MS[kind]);
    const startMs = performance.now();
    if (mayMs > startMs) return mayMs;
    for (const shard of shards) {
      this.#wanted.delete(shard);
      this.#busy.add(shard);
    }
    const turn: Turn = { kind, startMs, ended: Promise.resolve() };
    this.#turns.add(turn);
    turn.ended = this.#run(shards).finally(() => {
      this.#turns.delete(turn);
      for (const shard of shards) this.#busy.delete(shard);
      this.#schedule();
    });
    return startMs + PATIENCE_MS[kind];
  }

  async #run(shards: readonly number[]): Promise<void> {
    const { logger } = this.#tools;
    const wasCalm = this.#backOff.size === 0;
    try {
      for (const shard of await takeInShards(this.#tools, shards)) this.#wanted.add(shard);
      for (const shard of shards) this.#backOff.delete(shard);
      if (this.#backOff.size === 0) this.#failingFromMs = null;
      if (!wasCalm && this.#backOff.size === 0) logger.info({ loop: 'intake' }, 'loop recovered');
    } catch (error) {
      if (wasCalm) logger.warn({ loop: 'intake', shards, err: error }, 'loop failed, retrying');
      this.#failingFromMs ??= performance.now();
      for (const shard of shards) this.#putOff(shard);
    }
  }

  #putOff(shard: number): void {
    const pauseMs = (this.#backOff.get(shard)?.pauseMs ?? BACK_OFF.firstMs / 2) * 2;
    const boundedMs = Math.min(BACK_OFF.longestMs, pauseMs);
    this.#backOff.set(shard, { untilMs: performance.now() + boundedMs, pauseMs: boundedMs });
    this.#wanted.add(shard);
  }
}
