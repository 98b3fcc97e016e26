import { setTimeout as sleep } from 'node:timers/promises';
import type { SignedBody } from '../../engine/inbox/bodies.ts';

/** Why a body was not acknowledged; upstream should send it again. */
export class BodyNotStoredError extends Error {
  readonly reason: 'too_many_waiting' | 'too_slow' | 'not_stored';
  constructor(reason: BodyNotStoredError['reason'], cause?: unknown) {
    super(`The body was not stored: ${reason}`, { cause });
    this.name = 'BodyNotStoredError';
    this.reason = reason;
  }
}

export type BodyBatcherOptions = {
  /**
   * Commits all bodies or none. Once it calls `startNext`, what comes next may be stored beside it: it keeps the order itself.
   */
  store: (bodies: readonly SignedBody[], startNext: () => void) => Promise<void>;
  /** Whether a failed `store` says nothing about the bodies, so that storing them one by one is no use. */
  isTransient: (error: unknown) => boolean;
  /** Whether the database is away, for a moment perhaps: the bodies are kept and stored again as long as their time lasts. */
  isAway: (error: unknown) => boolean;
  /** Called with a body that fails even alone: the operator must find out why. */
  onPoison: (error: unknown, sizeBytes: number) => void;
  maxBatchBodies: number;
  /** A larger body goes alone. */
  maxBatchBytes: number;
  /** Of all bodies that wait or are being committed; more are refused. */
  maxWaitingBytes: number;
  /** After this time a body is answered for as not stored, and the next batch no longer waits for its batch. */
  commitTimeoutMs: number;
  /** How long a batch that hangs counts against the three that may; longer than a statement may take at all. */
  abandonAfterMs: number;
};

type Waiting = {
  signed: SignedBody;
  settle: (error: BodyNotStoredError | null) => void;
  isSettled: boolean;
  /** Why it could not be stored until now. */
  failure: unknown;
};

/** Between two attempts to store bodies while the database is away; it may be back in a second. */
const AGAIN_MS = 100;

const MAX_HANGING_BATCHES = 3;

/**
 * Group commit: all bodies that wait go to the database in one statement, and the next batch starts when the former
 * is committed, or lets it. No body waits for a group to fill, so a lone body is as fast as it can be.
 */
export class BodyBatcher {
  readonly #options: BodyBatcherOptions;
  #queue: Waiting[] = [];
  #waitingBytes = 0;
  #hangingBatches = 0;
  #running: Promise<void> | null = null;
  /** Batches that are being committed: one, or more where one lets the next start. */
  readonly #underWay = new Set<Promise<void>>();

  constructor(options: BodyBatcherOptions) {
    this.#options = options;
  }

  /** Resolves once the body is committed. Throws BodyNotStoredError; the body may then be stored or not. */
  async add(signed: SignedBody): Promise<void> {
    const sizeBytes = Math.max(signed.body.length, 1);
    if (this.#waitingBytes + sizeBytes > this.#options.maxWaitingBytes)
      throw new BodyNotStoredError('too_many_waiting');
    this.#waitingBytes += sizeBytes;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = {
      signed,
      isSettled: false,
      failure: null,
      settle: (error) => {
        if (waiting.isSettled) return;
        waiting.isSettled = true;
        clearTimeout(timer);
        this.#waitingBytes -= sizeBytes;
        if (error === null) resolve();
        else reject(error);
      },
    };
    const tooSlow = () => waiting.settle(outOfTime(waiting));
    const timer = setTimeout(tooSlow, this.#options.commitTimeoutMs);
    this.#queue.push(waiting);
    this.#running ??= Promise.resolve().then(() => this.#runBatches());
    await promise;
  }

  async drained(): Promise<void> {
    await this.#running;
    await Promise.all(this.#underWay);
  }

  async #runBatches(): Promise<void> {
    while (this.#queue.length > 0) {
      if (this.#hangingBatches >= MAX_HANGING_BATCHES)
        await new Promise((resolve) => setTimeout(resolve, this.#options.commitTimeoutMs / 20).unref());
      else await this.#runBatch(this.#takeBatch());
      this.#queue = this.#queue.filter((waiting) => !waiting.isSettled);
    }
    this.#running = null;
  }

  /** The oldest bodies that fit into one batch; always one at least. */
  #takeBatch(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const { signed } of this.#queue) {
      bytes += signed.body.length;
      if (count > 0 && (bytes > this.#options.maxBatchBytes || count === this.#options.maxBatchBodies)) break;
      count += 1;
    }
    const batch = this.#queue.slice(0, count);
    this.#queue = this.#queue.slice(count);
    return batch;
  }

  /** Resolves when the next batch may begin. */
  async #runBatch(batch: readonly Waiting[]): Promise<void> {
    const mayStartNext = Promise.withResolvers<void>();
    const committing = this.#commit(batch, mayStartNext.resolve);
    this.#underWay.add(committing);
    void committing.finally(() => this.#underWay.delete(committing));
    await Promise.race([committing, mayStartNext.promise]);
  }

  /** Waits for the batch to be committed, but no longer than the time-out: a hanging one is left behind. */
  async #commit(batch: readonly Waiting[], startNext: () => void): Promise<void> {
    const committed = commitBatch(this.#options, batch, startNext);
    if (await isDoneWithin(committed, this.#options.commitTimeoutMs)) return;
    for (const waiting of batch) waiting.settle(outOfTime(waiting));
    this.#hangingBatches += 1;
    void isDoneWithin(committed, this.#options.abandonAfterMs).then(() => {
      this.#hangingBatches -= 1;
    });
  }
}

function outOfTime({ failure }: Waiting): BodyNotStoredError {
  return failure === null
    ? new BodyNotStoredError('too_slow')
    : new BodyNotStoredError('not_stored', failure);
}

/** Never throws: each body of the batch gets its own outcome. */
async function commitBatch(
  options: BodyBatcherOptions,
  given: readonly Waiting[],
  startNext: () => void,
): Promise<void> {
  const batch = given.filter(({ isSettled }) => !isSettled);
  if (batch.length === 0) return;
  try {
    await options.store(
      batch.map(({ signed }) => signed),
      startNext,
    );
    for (const waiting of batch) waiting.settle(null);
  } catch (error) {
    if (options.isAway(error)) {
      for (const waiting of batch) waiting.failure = error;
      await sleep(AGAIN_MS);
      return await commitBatch(options, batch, startNext);
    }
    if (batch.length > 1 && !options.isTransient(error)) {
      // The bodies are at fault, not the database: the one that is must not take the others with it.
      for (const waiting of batch) await commitBatch(options, [waiting], startNext);
      return;
    }
    if (!options.isTransient(error)) options.onPoison(error, batch[0]?.signed.body.length ?? 0);
    for (const waiting of batch) waiting.settle(new BodyNotStoredError('not_stored', error));
  }
}

/** Keeps no process alive. */
async function isDoneWithin(work: Promise<void>, timeoutMs: number): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>();
  const timer = setTimeout(resolve, timeoutMs, false).unref();
  const isDone = await Promise.race([work.then(() => true), late]);
  clearTimeout(timer);
  return isDone;
}
