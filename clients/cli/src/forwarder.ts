import { randomUUID } from 'node:crypto';
import type { StreamedEvent } from './event-block.ts';
import { networkCode, networkProblem } from './failure.ts';
import { postWebhook, type WebhookResponse } from './post-webhook.ts';
import { webhookHeaders } from './signature.ts';

/** An attempt to forward an event to the server of the user. */
export type Forwarded = {
  event: StreamedEvent;
  body: Buffer;
  deliveryId: string;
  attempt: number;
  /** Null: there was no response. */
  status: number | null;
  error: string | null;
  durationMs: number;
  responseBody: string;
  isDelivered: boolean;
};

export type ForwarderOptions = {
  url: string;
  secret: string;
  /** As at the service: 15 seconds. */
  timeoutMs: number;
  /** An event waits for so long while nothing listens at the URL. */
  maxRefusedMs: number;
  onForwarded(forwarded: Forwarded): void;
  /** Everything up to this cursor is forwarded or has failed. */
  onSettled(cursor: string, event: StreamedEvent): void;
};

const MAX_WAITING = 200;
const MAX_UNDER_WAY = 10;
const MAX_KEPT = 500;
const MAX_RESPONSE_CHARS = 400;
const MAX_HTML_CHARS = 120;
const REFUSED_AGAIN_MS = 300;

type Waiting = { event: StreamedEvent; cursor: string; isSettled: boolean };

/** Work for one event id is done in turn. */
function makeLanes() {
  const lanes = new Map<string, Promise<void>>();
  return {
    add({ eventId }: StreamedEvent, work: () => Promise<void>): Promise<void> {
      const lane = (lanes.get(eventId) ?? Promise.resolve()).then(work);
      lanes.set(eventId, lane);
      void lane.finally(() => {
        if (lanes.get(eventId) === lane) lanes.delete(eventId);
      });
      return lane;
    },
    async idle(): Promise<void> {
      while (lanes.size > 0) await Promise.all(lanes.values());
    },
  };
}

/** Forwards events as the service delivers them: those with one `eventId` one after the other, others side by side. */
export function makeForwarder(options: ForwarderOptions) {
  const waiting: Waiting[] = [];
  const lanes = makeLanes();
  const kept: Forwarded[] = [];
  const places = makePlaces(MAX_UNDER_WAY);
  const stopping = new AbortController();
  let onRoom: (() => void)[] = [];
  let userAgent = 'Heliograph';

  const wakeAdders = (): void => {
    const all = onRoom;
    onRoom = [];
    for (const wake of all) wake();
  };
  const note = (forwarded: Forwarded): void => {
    kept.push(forwarded);
    if (kept.length > MAX_KEPT) kept.shift();
    options.onForwarded(forwarded);
  };
  const settle = (one: Waiting): void => {
    one.isSettled = true;
    let last: Waiting | undefined;
    while (waiting[0]?.isSettled === true) last = waiting.shift();
    if (last !== undefined) options.onSettled(last.cursor, last.event);
    if (waiting.length < MAX_WAITING) wakeAdders();
  };
  const send = async (event: StreamedEvent, deliveryId: string, attempt: number): Promise<void> => {
    await places.take();
    try {
      const made = { event, deliveryId, attempt, userAgent };
      const forwarded = await forward(made, options, stopping.signal);
      if (!stopping.signal.aborted) note(forwarded);
    } finally {
      places.free();
    }
  };

  return {
    setUserAgent(name: string): void {
      userAgent = name;
    },
    /** Takes an event over; waits while many are waiting for the server of the user. */
    async add(event: StreamedEvent, cursor: string): Promise<void> {
      while (waiting.length >= MAX_WAITING && !stopping.signal.aborted) {
        await new Promise<void>((resolve) => onRoom.push(resolve));
      }
      if (stopping.signal.aborted) return;
      const one = { event, cursor, isSettled: false };
      waiting.push(one);
      void lanes.add(event, async () => {
        if (!stopping.signal.aborted) await send(event, newDeliveryId(), 1);
        if (!stopping.signal.aborted) settle(one);
      });
    },
    /** Makes another attempt for an event. */
    retry({ event, deliveryId, attempt }: Forwarded): void {
      void lanes.add(event, () => send(event, deliveryId, attempt + 1));
    },
    /** Attempts, the oldest first; of each delivery only the last one. */
    latest(): Forwarded[] {
      return [...new Map(kept.map((one) => [one.deliveryId, one])).values()];
    },
    /** All attempts that are kept, the oldest first. */
    attempts: (): readonly Forwarded[] => kept,
    waitingCount: () => waiting.length,
    /** Resolves when nothing is under way. */
    idle: lanes.idle,
    stop(): void {
      stopping.abort();
      wakeAdders();
    },
  };
}

export type Forwarder = ReturnType<typeof makeForwarder>;

function newDeliveryId(): string {
  return `dlv_${randomUUID().replaceAll('-', '')}`;
}

function makePlaces(count: number) {
  const waiting: (() => void)[] = [];
  let taken = 0;
  return {
    async take(): Promise<void> {
      if (taken < count) taken += 1;
      else await new Promise<void>((resolve) => waiting.push(resolve));
    },
    free(): void {
      const next = waiting.shift();
      if (next === undefined) taken -= 1;
      else next();
    },
  };
}

type Made = { event: StreamedEvent; deliveryId: string; attempt: number; userAgent: string };

async function forward(made: Made, options: ForwarderOptions, stop: AbortSignal): Promise<Forwarded> {
  const { event, deliveryId, attempt } = made;
  const body = event.body ?? Buffer.alloc(0);
  const beganAt = performance.now();
  const base = { event, body, deliveryId, attempt };
  for (;;) {
    const startedAt = performance.now();
    try {
      const { status, responseBody } = await post(made, body, options, stop);
      const durationMs = performance.now() - startedAt;
      const isDelivered = status >= 200 && status < 300;
      return { ...base, status, error: null, durationMs, responseBody, isDelivered };
    } catch (error) {
      const isRefused = networkCode(error) === 'ECONNREFUSED';
      const isLate = performance.now() - beganAt > options.maxRefusedMs;
      if (!isRefused || isLate || stop.aborted) {
        const durationMs = performance.now() - startedAt;
        const problem = networkProblem(error);
        return { ...base, status: null, error: problem, durationMs, responseBody: '', isDelivered: false };
      }
      // A server that restarts after each change of its source is away for a moment.
      await new Promise((resolve) => setTimeout(resolve, REFUSED_AGAIN_MS));
    }
  }
}

async function post(
  made: Made,
  body: Buffer,
  { url, secret, timeoutMs }: ForwarderOptions,
  stop: AbortSignal,
) {
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  const headers = webhookHeaders(secret, body, { ...made, timestampSeconds });
  const response = await postWebhook(url, headers, body, { signal: stop, timeoutMs });
  return { status: response.status, responseBody: shownBody(response) };
}

/** A page of HTML in its words alone, in one line. */
function shownBody({ body, isHtml }: WebhookResponse): string {
  const text = isHtml
    ? body
        .slice(0, 8_192)
        .replace(/<(style|script)\b[\s\S]*?<\/\1>|<[^<>]*>/gi, ' ')
        .replace(/\s+/g, ' ')
    : body;
  return text.trim().slice(0, isHtml ? MAX_HTML_CHARS : MAX_RESPONSE_CHARS);
}
