/** Why a body was not acknowledged; whoever sent it should send it again. */
export class BodyNotStoredError extends Error {
  readonly reason: 'too_many_waiting' | 'too_slow' | 'not_stored';
  constructor(reason: BodyNotStoredError['reason'], cause?: unknown) {
    super(`The body was not stored: ${reason}`, { cause });
    this.name = 'BodyNotStoredError';
    this.reason = reason;
  }
}

export type BodyBatcherOptions = {
  /** Commits all bodies or none. */
  store: (bodies: readonly Buffer[]) => Promise<void>;
  /** Whether a failed `store` says nothing about the bodies, so that storing them one by one is no use. */
  isTransient: (error: unknown) => boolean;
  /** Told of a body that fails even alone: somebody must find out why. */
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

export type BodyBatcher = {
  /** Resolves once the body is committed. Throws BodyNotStoredError; the body may then be stored or not. */
  add(body: Buffer): Promise<void>;
  /** Resolves when no body waits any more. */
  drained(): Promise<void>;
};

type Waiting = { body: Buffer; settle: (error: BodyNotStoredError | null) => void; isSettled: boolean };

const MAX_HANGING_BATCHES = 3;

/**
 * Group commit: all bodies that wait go to the database in one statement, and the next batch starts when the former
 * is committed. Nobody waits for a group to fill, so a lone body is as fast as it can be.
 */
export function createBodyBatcher(options: BodyBatcherOptions): BodyBatcher {
  let queue: Waiting[] = [];
  let waitingBytes = 0;
  let hangingBatches = 0;
  let running: Promise<void> | null = null;

  async function runBatches(): Promise<void> {
    while (queue.length > 0) {
      if (hangingBatches >= MAX_HANGING_BATCHES) await pause(options.commitTimeoutMs / 20).ended;
      else await runBatch(takeBatch());
      queue = queue.filter((waiting) => !waiting.isSettled);
    }
    running = null;
  }

  /** The oldest bodies that fit into one batch; always one at least. */
  function takeBatch(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const { body } of queue) {
      bytes += body.length;
      if (count > 0 && (bytes > options.maxBatchBytes || count === options.maxBatchBodies)) break;
      count += 1;
    }
    const batch = queue.slice(0, count);
    queue = queue.slice(count);
    return batch;
  }

  /** Waits for the batch to be committed, but no longer than the time-out: a hanging one is left behind. */
  async function runBatch(batch: readonly Waiting[]): Promise<void> {
    const committed = commitBatch(options, batch);
    if (await isDoneWithin(committed, options.commitTimeoutMs)) return;
    for (const waiting of batch) waiting.settle(new BodyNotStoredError('too_slow'));
    hangingBatches += 1;
    void isDoneWithin(committed, options.abandonAfterMs).then(() => {
      hangingBatches -= 1;
    });
  }

  return {
    async add(body) {
      const sizeBytes = Math.max(body.length, 1);
      if (waitingBytes + sizeBytes > options.maxWaitingBytes)
        throw new BodyNotStoredError('too_many_waiting');
      waitingBytes += sizeBytes;
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(
          () => waiting.settle(new BodyNotStoredError('too_slow')),
          options.commitTimeoutMs,
        );
        const waiting: Waiting = {
          body,
          isSettled: false,
          settle(error) {
            if (waiting.isSettled) return;
            waiting.isSettled = true;
            clearTimeout(timer);
            waitingBytes -= sizeBytes;
            if (error === null) resolve();
            else reject(error);
          },
        };
        queue.push(waiting);
        running ??= Promise.resolve().then(runBatches);
      });
    },
    async drained() {
      await running;
    },
  };
}

/** Never throws: each body of the batch is told on its own. */
async function commitBatch(options: BodyBatcherOptions, batch: readonly Waiting[]): Promise<void> {
  try {
    await options.store(batch.map(({ body }) => body));
    for (const waiting of batch) waiting.settle(null);
  } catch (error) {
    if (batch.length > 1 && !options.isTransient(error)) {
      // The bodies are at fault, not the database: the one that is must not take the others with it.
      for (const waiting of batch) if (!waiting.isSettled) await commitBatch(options, [waiting]);
      return;
    }
    if (!options.isTransient(error)) options.onPoison(error, batch[0]?.body.length ?? 0);
    for (const waiting of batch) waiting.settle(new BodyNotStoredError('not_stored', error));
  }
}

async function isDoneWithin(work: Promise<void>, timeoutMs: number): Promise<boolean> {
  const timeOut = pause(timeoutMs);
  const isDone = await Promise.race([work.then(() => true), timeOut.ended.then(() => false)]);
  timeOut.cancel();
  return isDone;
}

/** Keeps no process alive. */
function pause(durationMs: number): { ended: Promise<void>; cancel: () => void } {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, durationMs).unref();
  return { ended, cancel: () => clearTimeout(timer) };
}
