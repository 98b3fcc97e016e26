import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import { type Bill, noteStatus } from './bill.ts';
import type { ChatLog } from './chat-log.ts';
import type { PhoneNumber } from './demo-accounts.ts';
import type { GroupRecipient } from './group-register.ts';
import { groupStatuses } from './payloads/group-change.ts';
import { buildMessageStatus } from './payloads/message-status.ts';
import { serializeWebhookBody } from './payloads/webhook-body.ts';
import type { WebhookSender } from './upstream-webhook-sender.ts';

/** A message that the platform accepted and now reports on. */
type AcceptedMessage = {
  id: string;
  phone: PhoneNumber;
  recipientId?: string;
  recipientUserId?: string;
  /** The group that it went to. */
  group?: GroupRecipient;
  opaqueData?: string;
};

const LADDER = ['sent', 'delivered', 'read'] as const;
const MAX_ATTEMPTS = 12;
const MAX_PAUSE_MS = 30_000;

/** Starts the reports of one message; returns at once. */
export type StatusLadder = { start: (message: AcceptedMessage) => void; settled: () => Promise<void> };

/** Creates the ladder sent → delivered → read, delayMs apart, each repeated until it is answered 200. */
export function createStatusLadder(options: {
  sender: WebhookSender;
  bill: Bill;
  chat: ChatLog;
  delayMs: number;
  signal: AbortSignal;
  now: () => number;
  log: FastifyBaseLogger;
}): StatusLadder {
  const { sender, signal } = options;
  const running = new Set<Promise<void>>();

  async function sendUntilAccepted(body: Buffer): Promise<void> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      if (await isAccepted(sender, body)) return;
      await sleep(Math.min(500 * 2 ** attempt, MAX_PAUSE_MS), undefined, { signal });
    }
    options.log.warn('a status webhook was given up after %d attempts', MAX_ATTEMPTS);
  }

  async function climb({ phone, group, ...message }: AcceptedMessage): Promise<void> {
    for (const status of LADDER) {
      await sleep(options.delayMs, undefined, { signal });
      options.chat.note(message.id, status);
      const timestampSeconds = Math.floor(options.now() / 1000);
      for (const report of group === undefined ? [{}] : groupStatuses(group, status, phone)) {
        const request = { ...message, status, timestampSeconds, ...report };
        const { body } = buildMessageStatus(request, phone);
        noteStatus(options.bill, request, phone);
        await sendUntilAccepted(serializeWebhookBody(body));
      }
    }
  }

  return {
    start: (message) => {
      const run = climb(message)
        // Only the shutdown of the server interrupts a ladder.
        .catch((error: unknown) => {
          if (!signal.aborted) {
            options.log.error({ err: error }, 'a status ladder broke off');
          }
        })
        .finally(() => running.delete(run));
      running.add(run);
    },
    settled: async () => {
      await Promise.all(running);
    },
  };
}

async function isAccepted(sender: WebhookSender, body: Buffer): Promise<boolean> {
  try {
    return (await sender.send(body)).status === 200;
  } catch {
    return false;
  }
}
