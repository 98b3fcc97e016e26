import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../../platform/postgres/database.ts';
import { returnTasks } from '../../../platform/temporal/workflow-tasks.ts';
import { listNumberPaces, paceOfNumber } from '../../accounts/number-pace.ts';
import { drawTurns } from './begin-at-once.ts';
import type { SendResult, SendRun } from './make-send.ts';
import { makePassShare } from './pass-share.ts';
import type { SendMessageInput } from './record-send.ts';
import { SHARE } from './scheduled-turn.ts';
import { evenPace } from './send-pacing.ts';
import { sendWorkflowId } from './send-task.ts';

export type PassTools = {
  database: Database;
  /** `messagesPerSecond` holds for numbers without their own pace; null: as upstream allows. */
  sending: { messagesPerSecond: number | null };
  /** `makeSend`. */
  send: (input: SendMessageInput, run: SendRun) => Promise<SendResult>;
};

/** `endsAtMs`: none begins after it (`performance.now()`). */
export type Pass = { endsAtMs: number; signal: AbortSignal; onMessage: () => void };

/** `failed`: one has, so that it should be looked whether the others may be sent; `waits`: one has to. */
export type PassEnd = 'through' | 'failed' | 'waits';

/** Longer than a turn is away at the pace of the number, shorter than what a pause or upstream's own limit asks for. */
const SITS_OUT_MS = 3_000;
/** Longer than the turns of others that send many from the number, some at a time. */
const FAR_MS = 5_000;
/** Calls of upstream that take this long do not slow a pass down. */
const CALL_SECONDS = 0.5;
const MOST_AT_A_TIME = 100;
/** After that it is looked again what may be sent. */
const PASS_SECONDS = 5;
const LEAST = 10;
const MOST = 500;

/** How many messages leave a number in a second, and how many scheduled ones, or of a broadcast, make up a pass. */
export async function paceOfPass(
  { database, sending }: PassTools,
  { wabaId, phoneNumberId }: { wabaId: string; phoneNumberId: string },
): Promise<{ perSecond: number; size: number }> {
  const numbers = await listNumberPaces(database, wabaId);
  const own = numbers.find((one) => one.phoneNumberId === phoneNumberId);
  const known = own ?? { messagesPerSecond: null, upstreamPerSecond: null };
  const perSecond = paceOfNumber(known, sending.messagesPerSecond);
  return { perSecond, size: Math.min(MOST, Math.max(LEAST, Math.ceil(SHARE * perSecond * PASS_SECONDS))) };
}

/**
 * Sends messages here, without a workflow each, and begins them in their order. One that has to wait, or to be tried again, is left to its own
 * workflow. Then, or when one has failed, no other begins. `queue` returns the ids of the messages of some.
 */
export async function sendInPass<Item>(
  tools: PassTools,
  { wabaId, phoneNumberId }: { wabaId: string; phoneNumberId: string },
  items: readonly Item[],
  queue: (some: readonly Item[]) => readonly string[] | Promise<readonly string[]>,
  { endsAtMs, signal, onMessage, perSecond }: Pass & { perSecond: number },
): Promise<PassEnd> {
  const lastAtMs = Math.min(endsAtMs, performance.now() + PASS_SECONDS * 1_000);
  const atATime = Math.min(MOST_AT_A_TIME, Math.max(1, Math.floor(SHARE * perSecond * CALL_SECONDS)));
  const underWay = new Set<Promise<void>>();
  // After a delay they do not leave together, nor fill the pace of the number, which others would wait for.
  const apartMs = evenPace(perSecond).intervalMs;
  let nextAtMs = 0;
  let end: PassEnd = 'through';
  const { database } = tools;
  const run = {
    attempt: 1,
    signal,
    sitsOutMs: SITS_OUT_MS,
    pass: makePassShare(database, wabaId, perSecond),
  };
  const mayBegin = () => end === 'through' && !signal.aborted;
  const begin = (messageId: string) => {
    const sending = sendOrLeave(tools, { wabaId, messageId }, run).then((one) => {
      if (end !== 'waits') end = one === 'through' ? end : one;
      underWay.delete(sending);
    });
    underWay.add(sending);
  };
  try {
    for (let at = 0; at < items.length && mayBegin() && performance.now() <= lastAtMs; at += atATime) {
      const ids = await queue(items.slice(at, at + atATime));
      // Evenly, so that messages of others find the database and Temporal free between two of these.
      const turns = await drawTurns(database, { phoneNumberId, perSecond }, ids);
      const drawnAtMs = performance.now();
      const far = turns.filter(({ waitMs }) => waitMs > FAR_MS).map(({ id }) => id);
      for (const { id, waitMs } of turns.slice(0, turns.length - far.length)) {
        if (underWay.size >= atATime) await Promise.race(underWay);
        const atMs = Math.max(drawnAtMs + waitMs, nextAtMs);
        await sleep(Math.max(0, atMs - performance.now()), undefined, { signal }).catch(() => undefined);
        if (!mayBegin()) break;
        nextAtMs = performance.now() + apartMs;
        begin(id);
        onMessage();
      }
      if (far.length > 0) {
        await leave(database, far);
        end = 'waits';
      }
    }
  } finally {
    await Promise.all(underWay);
  }
  return end;
}

/** Whatever keeps it from its end, its workflow shows and retries. */
async function sendOrLeave(
  { database, send }: PassTools,
  input: SendMessageInput,
  run: SendRun,
): Promise<PassEnd> {
  try {
    const { outcome } = await send(input, run);
    return outcome === 'failed' ? 'failed' : 'through';
  } catch {
    await leave(database, [input.messageId]);
    return 'waits';
  }
}

/** Their workflows go on with them. */
async function leave(database: Database, messageIds: readonly string[]): Promise<void> {
  // Where the database is away, the tasks are due soon by themselves.
  await returnTasks(database, messageIds.map(sendWorkflowId)).catch(() => undefined);
  database.notify('heliograph_workflow_tasks');
}
