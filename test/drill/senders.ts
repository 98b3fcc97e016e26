import { setTimeout as delay } from 'node:timers/promises';
import { type ExpectedEvent, postUpstream, type UpstreamTarget } from '../support/load/upstream-bodies.ts';
import { seededDice } from '../support/seeded-dice.ts';
import type { DrillAccount } from './accounts.ts';
import { bodyStream, type DrillBody } from './body-stream.ts';

/** What happened to a body on its way in. Sends and acknowledgements of all senders count in one order. */
export type SentBody = {
  wabaId: string;
  events: ExpectedEvent[];
  bytes: Buffer;
  firstSentTick: number;
  /** Unix time in ms. */
  firstSentMs: number;
  /** Null: never answered 200, so it may have been kept or not. */
  acknowledgedTick: number | null;
  /** Unix time in ms. */
  acknowledgedMs: number | null;
  tries: number;
  /** Sent once more after it had been acknowledged, as upstream now and then does. */
  repeated: boolean;
};

/** An answer other than 200; 0: none at all in time. */
type Refusal = { atMs: number; status: number };

export type Senders = {
  bodies: SentBody[];
  refusals: Refusal[];
  /** Begins nothing new, sends again what is not acknowledged until it is or `timeoutMs` are over. */
  finish(timeoutMs: number): Promise<void>;
  /** Sends a body once more as if it had not been acknowledged, until it is. */
  repeat(sent: SentBody): Promise<void>;
  abort(): void;
};

type Waiting = { body: DrillBody; sent: SentBody; dueMs: number };

type Sender = {
  target: UpstreamTarget;
  dice: () => number;
  next: () => DrillBody;
  bodies: SentBody[];
  refusals: Refusal[];
  waiting: Waiting[];
  tick: () => number;
  signal: AbortSignal;
};

/** Upstream's redelivery, much faster than the real one. */
const AGAIN_MS = { low: 400, high: 2_500 };
const REPEATED_SHARE = 0.04;
const SENDERS_PER_ACCOUNT = 2;
/** Half a dozen kinds of bodies make so many events each. */
const EVENTS_PER_BODY = 2;

/** Two senders per account that post at a steady rate; `eventsPerSecond` counts events over all. */
export function startSenders(
  target: UpstreamTarget,
  options: { accounts: readonly DrillAccount[]; seed: number; eventsPerSecond: number; media?: boolean },
): Senders {
  const bodies: SentBody[] = [];
  const refusals: Refusal[] = [];
  const aborted = new AbortController();
  let ticks = 0;
  let ending = false;
  const tick = () => {
    ticks += 1;
    return ticks;
  };
  const count = options.accounts.length * SENDERS_PER_ACCOUNT;
  const pauseMs = (1_000 * count * EVENTS_PER_BODY) / options.eventsPerSecond;
  const loops = Array.from({ length: count }, async (_, n) => {
    const seed = options.seed * 10_000 + n;
    const account = options.accounts[n % options.accounts.length];
    if (account === undefined) return;
    const sender: Sender = {
      target,
      dice: seededDice(seed),
      next: bodyStream(account, seed, options.media),
      bodies,
      refusals,
      waiting: [],
      tick,
      signal: aborted.signal,
    };
    while (!aborted.signal.aborted) {
      if (ending && sender.waiting.length === 0) return;
      const begin = performance.now();
      await turn(sender, ending);
      await delay(Math.max(5, pauseMs * (0.5 + sender.dice()) - (performance.now() - begin)));
    }
  });
  return {
    bodies,
    refusals,
    finish: async (timeoutMs) => {
      ending = true;
      const timer = setTimeout(() => aborted.abort(), timeoutMs);
      await Promise.all(loops);
      clearTimeout(timer);
    },
    repeat: async (sent) => {
      Object.assign(sent, { firstSentTick: tick(), acknowledgedTick: null, acknowledgedMs: null });
      while (!aborted.signal.aborted && (await postUpstream(target, sent.bytes)) !== 200)
        await delay(AGAIN_MS.low);
      Object.assign(sent, { acknowledgedTick: tick(), acknowledgedMs: Date.now() });
    },
    abort: () => aborted.abort(),
  };
}

/** Sends again what is due, otherwise something new. */
async function turn(sender: Sender, ending: boolean): Promise<void> {
  const now = performance.now();
  const index = sender.waiting.findIndex(({ dueMs }) => dueMs <= now);
  const [again] = index < 0 ? [] : sender.waiting.splice(index, 1);
  if (again !== undefined) return await post(sender, again.body, again.sent);
  if (ending) return;
  const body = sender.next();
  const sent: SentBody = {
    wabaId: body.wabaId,
    events: body.events,
    bytes: body.bytes,
    firstSentTick: sender.tick(),
    firstSentMs: Date.now(),
    acknowledgedTick: null,
    acknowledgedMs: null,
    tries: 0,
    repeated: false,
  };
  sender.bodies.push(sent);
  await post(sender, body, sent);
}

async function post(sender: Sender, body: DrillBody, sent: SentBody): Promise<void> {
  sent.tries += 1;
  const status = await postUpstream(sender.target, body.bytes);
  const dueMs = performance.now() + AGAIN_MS.low + sender.dice() * (AGAIN_MS.high - AGAIN_MS.low);
  if (status !== 200) {
    sender.refusals.push({ atMs: Date.now(), status });
    sender.waiting.push({ body, sent, dueMs });
    return;
  }
  if (sent.acknowledgedTick !== null) return;
  sent.acknowledgedTick = sender.tick();
  sent.acknowledgedMs = Date.now();
  if (sender.dice() >= REPEATED_SHARE) return;
  sent.repeated = true;
  sender.waiting.push({ body, sent, dueMs });
}
