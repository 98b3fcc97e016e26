import type { Config } from '../../../platform/config/config.ts';
import type { Logger } from '../../../platform/logger.ts';
import { listenToDatabase } from '../../../platform/postgres/connection.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { findSendProgress, type SendProgress } from './outbound-messages.ts';

/** Upstream mostly answers within a second. */
const WAIT_MS = 10_000;

/** Covers what the listening connection missed. */
const LOOK_EVERY_MS = 1_000;

export type OutcomeWaiter = {
  /** How far a message is: at once when its outcome is known, else after at most 10 s. */
  wait(wabaId: string, messageId: string): Promise<SendProgress>;
  close(): Promise<void>;
};

/** Waits for outcomes of sends that a worker announces, over a connection that is made when it is first needed. */
export function createOutcomeWaiter(
  database: Database,
  { url, directUrl }: Pick<Config['database'], 'url' | 'directUrl'>,
  logger: Logger,
): OutcomeWaiter {
  const waiting = new Map<string, Set<() => void>>();
  const listener = listenToDatabase({
    url,
    directUrl,
    applicationName: 'heliograph-outcomes',
    logger,
    handlers: {
      heliograph_sends: (messageId) => {
        const woken = messageId === '' ? [...waiting.values()] : [waiting.get(messageId) ?? []];
        for (const wakes of woken) for (const wake of wakes) wake();
      },
    },
    isWanted: () => waiting.size > 0,
  });
  const onOutcome = (messageId: string, wake: () => void) => {
    const wakes = waiting.get(messageId) ?? new Set();
    waiting.set(messageId, wakes.add(wake));
    listener.open();
    return () => {
      wakes.delete(wake);
      if (wakes.size === 0) waiting.delete(messageId);
    };
  };
  return {
    wait: async (wabaId, messageId) => {
      const deadline = performance.now() + WAIT_MS;
      let wake = () => {};
      const release = onOutcome(messageId, () => wake());
      try {
        return await lookUntil(
          () => findSendProgress(database, wabaId, messageId),
          deadline,
          (woken) => {
            wake = woken;
          },
        );
      } finally {
        release();
      }
    },
    close: () => listener.close(),
  };
}

async function lookUntil(
  look: () => Promise<SendProgress | null>,
  deadline: number,
  onWake: (wake: () => void) => void,
): Promise<SendProgress> {
  for (;;) {
    const woken = Promise.withResolvers<void>();
    onWake(woken.resolve);
    const progress = await look();
    if (progress === null) throw new Error('the message to be sent is missing');
    const leftMs = deadline - performance.now();
    if (isOutcome(progress) || leftMs <= 0) return progress;
    const timer = setTimeout(woken.resolve, Math.min(leftMs, LOOK_EVERY_MS));
    await woken.promise;
    clearTimeout(timer);
  }
}

/** Whether nothing comes of it by itself, or not before its time. */
export function isOutcome({ state }: Pick<SendProgress, 'state'>): boolean {
  return state !== 'queued' && state !== 'sending';
}
