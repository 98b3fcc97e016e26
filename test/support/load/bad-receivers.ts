import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What a receiver can do with a webhook. */
export type Answer =
  | 'ok'
  | 'error'
  | 'rate-limit'
  | 'hang'
  | 'reset'
  | 'drip'
  | 'redirect'
  | 'close-early'
  /** Not a behaviour of its own: what came to the target of a redirect, which nobody may follow. */
  | 'moved';

/** `good` always answers 200, `mixed` misbehaves in every way, the others in the one they are named after. */
export type ReceiverKind = 'good' | 'mixed' | Exclude<Answer, 'ok' | 'moved'>;

/** Every kind that misbehaves in one way. */
export const BAD_KINDS = [
  'error',
  'rate-limit',
  'hang',
  'reset',
  'drip',
  'redirect',
  'close-early',
] as const satisfies readonly ReceiverKind[];

/** One webhook as it came. The last three members are filled in once it is known how it ended. */
export type Arrival = {
  /** Empty where the header was missing. */
  webhookId: string;
  headers: Record<string, string>;
  body: Buffer;
  answer: Answer;
  /** Order of everything that happened in this process: arrivals and answers share one counter. */
  arrivedTick: number;
  /** Unix time in ms with a fraction. */
  arrivedMs: number;
  answeredTick: number | null;
  answeredMs: number | null;
  /** Whether a 2xx was handed to the connection to its last byte. */
  accepted: boolean;
};

export type BadReceiverOptions = {
  /** Where it listens; 127.0.0.1 unless told. */
  host?: string;
  /** Uniform in [0, 1). */
  dice: () => number;
  /** Share of good answers of a bad receiver, 0 to 1; 0.7 unless told. */
  goodShare?: number;
  /** So many bad answers to one webhook-id at most; then it is taken. Never bad for ever unless told. */
  maxBadPerWebhook?: number;
  /** `retry-after` of a 429, in seconds. */
  retryAfterSeconds?: number;
  /** Pause between two bytes of a dripping answer, which has 64. */
  dripIntervalMs?: number;
  /** The answer is being chosen or on its way. */
  onArrival?: (arrival: Arrival) => void;
  /** The answer is complete, or the connection gone. */
  onSettled?: (arrival: Arrival) => void;
};

export type BadReceiver = {
  url: string;
  kind: ReceiverKind;
  /** From now on it takes everything: to let a run come to its end. */
  beGood(): void;
  close(): Promise<void>;
};

const DRIP_BYTES = 64;
let ticks = 0;
const nextTick = (): number => {
  ticks += 1;
  return ticks;
};
const nowMs = (): number => performance.timeOrigin + performance.now();

/** A tenant's server on a free port that misbehaves as its kind says. */
export async function startBadReceiver(
  kind: ReceiverKind,
  options: BadReceiverOptions,
): Promise<BadReceiver> {
  const choose = answerChooser(kind, options);
  const server = createServer((request, response) => {
    void serve(request, response, choose.next, options).catch(() => undefined);
  });
  server.keepAliveTimeout = 60_000;
  const { host = '127.0.0.1' } = options;
  await new Promise<void>((resolve) => server.listen(0, host, 1_024, resolve));
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}/hook`,
    kind,
    beGood: choose.beGood,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

function answerChooser(
  kind: ReceiverKind,
  { dice, goodShare = 0.7, maxBadPerWebhook = 4 }: BadReceiverOptions,
) {
  const badAnswers = new Map<string, number>();
  let good = kind === 'good';
  const next = (webhookId: string): Answer => {
    if (good || dice() < goodShare) return 'ok';
    const before = badAnswers.get(webhookId) ?? 0;
    if (before >= maxBadPerWebhook) return 'ok';
    badAnswers.set(webhookId, before + 1);
    if (kind !== 'mixed') return kind === 'good' ? 'ok' : kind;
    return BAD_KINDS[Math.floor(dice() * BAD_KINDS.length)] ?? 'error';
  };
  return {
    next,
    beGood: () => {
      good = true;
    },
  };
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  choose: (webhookId: string) => Answer,
  options: BadReceiverOptions,
): Promise<void> {
  const arrivedTick = nextTick();
  const arrivedMs = nowMs();
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const headers = request.headers as Record<string, string>;
  const webhookId = headers['webhook-id'] ?? '';
  const arrival: Arrival = {
    webhookId,
    headers,
    body: Buffer.concat(chunks),
    answer: request.url === '/hook' ? choose(webhookId) : 'moved',
    arrivedTick,
    arrivedMs,
    answeredTick: null,
    answeredMs: null,
    accepted: false,
  };
  options.onArrival?.(arrival);
  let complete = false;
  response.once('finish', () => {
    complete = true;
  });
  response.once('close', () => {
    arrival.accepted = complete && response.statusCode < 300 && response.headersSent;
    options.onSettled?.(arrival);
  });
  if (response.destroyed) return;
  const answered = () => {
    arrival.answeredTick = nextTick();
    arrival.answeredMs = nowMs();
  };
  giveAnswer(arrival.answer, { request, response, answered, options });
}

type Turn = {
  request: IncomingMessage;
  response: ServerResponse;
  /** Notes the time; called right before the last byte goes out, so that no reaction can be older. */
  answered: () => void;
  options: BadReceiverOptions;
};

function giveAnswer(answer: Answer, turn: Turn): void {
  const { request, response, answered, options } = turn;
  if (answer === 'hang') return;
  if (answer === 'drip') {
    void drip(turn);
    return;
  }
  answered();
  if (answer === 'reset') request.socket.resetAndDestroy();
  else if (answer === 'error') response.writeHead(500).end('not now');
  else if (answer === 'redirect') response.writeHead(302, { location: '/moved' }).end();
  else if (answer === 'rate-limit') {
    response.writeHead(429, { 'retry-after': String(options.retryAfterSeconds ?? 1) }).end('slow down');
  } else if (answer === 'close-early') {
    response
      .writeHead(200, { 'content-length': String(DRIP_BYTES) })
      .write('cut', () => request.socket.destroy());
  } else response.end('ok');
}

/** Longer than the sender's whole time-out when the pause between bytes says so. */
async function drip({ response, answered, options }: Turn): Promise<void> {
  response.writeHead(200, { 'content-length': String(DRIP_BYTES) });
  for (let sent = 0; sent < DRIP_BYTES && !response.destroyed; sent += 1) {
    if (sent === DRIP_BYTES - 1) {
      answered();
      response.end('.');
      return;
    }
    response.write('.');
    await new Promise((resolve) => setTimeout(resolve, options.dripIntervalMs ?? 500));
  }
}
