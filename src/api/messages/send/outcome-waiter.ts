import { findSendProgress, type SendProgress } from '../../../messages/send/outbound-messages.ts';
import { listenToOutcomes } from '../../../messages/send/outcome-listener.ts';
import type { Database } from '../../../platform/postgres/database.ts';

/** Upstream mostly answers within a second. */
const WAIT_MS = 10_000;

/** Covers what the listening connection missed. */
const LOOK_EVERY_MS = 1_000;

export type OutcomeWaiter = {
  /** How far a message is: at once when its outcome is known, else after at most 10 s. */
  wait(wabaId: string, messageId: string): Promise<SendProgress>;
  close(): Promise<void>;
};

/** Waits for outcomes of sends that a worker announces. */
export function createOutcomeWaiter(database: Database, databaseUrl: string): OutcomeWaiter {
  const listener = listenToOutcomes({ url: databaseUrl });
  return {
    wait: async (wabaId, messageId) => {
      const deadline = performance.now() + WAIT_MS;
      let wake = () => {};
      const release = listener.onOutcome(messageId, () => wake());
      try {
        for (;;) {
          const woken = Promise.withResolvers<void>();
          wake = woken.resolve;
          const progress = await findSendProgress(database, wabaId, messageId);
          if (progress === null) throw new Error('the message to be sent is missing');
          const leftMs = deadline - performance.now();
          if (isOutcome(progress) || leftMs <= 0) return progress;
          const timer = setTimeout(woken.resolve, Math.min(leftMs, LOOK_EVERY_MS));
          await woken.promise;
          clearTimeout(timer);
        }
      } finally {
        release();
      }
    },
    close: () => listener.close(),
  };
}

/** Whether anything can still come of it by itself. */
export function isOutcome({ state }: Pick<SendProgress, 'state'>): boolean {
  return state !== 'queued' && state !== 'sending';
}
