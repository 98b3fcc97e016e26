import { timingSafeEqual } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { signStandard, UnusableSignatureInputError } from '../../../src/engine/endpoint/webhook-signature.ts';
import type { Behaviour, Behaviours } from './behaviour.ts';
import type { EndpointSecrets } from './endpoint-secrets.ts';
import type { ReceivedWebhook, ReceivedWebhooks } from './received-webhooks.ts';

/** What the webhook route works with. */
export type ReceiverContext = {
  secrets: EndpointSecrets;
  received: ReceivedWebhooks;
  behaviours: Behaviours;
  print: (webhook: ReceivedWebhook) => void;
  /** Aborted when the receiver stops. */
  signal: AbortSignal;
};

type WebhookRoute = { Params: { name?: string } };

const DEFAULT_SLOW_MS = 3000;

function singleHeaders(request: FastifyRequest): Record<string, string> {
  const pairs = Object.entries(request.headers).map(([name, value]) => [
    name,
    [value ?? ''].flat().join(', '),
  ]);
  return Object.fromEntries(pairs);
}

async function receive(
  request: FastifyRequest<WebhookRoute>,
  context: ReceiverContext,
): Promise<ReceivedWebhook> {
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  const headers = singleHeaders(request);
  const webhookId = headers['webhook-id'] ?? '';
  const signed = {
    id: webhookId,
    timestamp: headers['webhook-timestamp'] ?? '',
    signature: headers['webhook-signature'] ?? '',
    body: bytes,
  };
  const verified = isSignedWithAny(signed, await context.secrets.current(), Date.now());
  return context.received.add({
    name: request.params.name ?? '',
    receivedAt: new Date().toISOString(),
    webhookId,
    headers,
    body: bytes.toString('utf8'),
    bodyBase64: bytes.toString('base64'),
    verified,
  });
}

/** Gives the answer that a behaviour asks for; undefined when it gives none. */
async function statusOf(
  behaviour: Behaviour,
  reply: FastifyReply,
  signal: AbortSignal,
): Promise<number | undefined> {
  switch (behaviour.mode) {
    case 'hang':
      reply.hijack();
      return undefined;
    case 'reset':
      reply.hijack();
      reply.raw.socket?.resetAndDestroy();
      return undefined;
    case 'slow':
      await sleep(behaviour.delayMs ?? DEFAULT_SLOW_MS, undefined, { signal }).catch(() => undefined);
      return 200;
    case 'status':
      if (behaviour.retryAfter !== undefined) {
        reply.header('retry-after', String(behaviour.retryAfter));
      }
      return behaviour.status ?? 500;
    default:
      return 200;
  }
}

/** POST /webhook and /webhook/:name: checks, notes, prints and answers one webhook. */
export function registerWebhookReceipt(app: FastifyInstance, context: ReceiverContext): void {
  const handle = async (request: FastifyRequest<WebhookRoute>, reply: FastifyReply) => {
    const webhook = await receive(request, context);
    if (!webhook.verified) {
      context.received.answered(webhook, 401);
      context.print(webhook);
      return reply.code(401).send({ error: 'The signature does not match.' });
    }
    const behaviour = context.behaviours.take(webhook.name);
    webhook.mode = behaviour.mode;
    const status = await statusOf(behaviour, reply, context.signal);
    if (status === undefined) {
      context.print(webhook);
      return reply;
    }
    context.received.answered(webhook, status);
    context.print(webhook);
    return reply.code(status).send({ received: status < 300 });
  };
  app.post<WebhookRoute>('/webhook', handle);
  app.post<WebhookRoute>('/webhook/:name', handle);
}

/** The signed parts of a webhook, as its headers carry them. */
type SignedWebhook = { id: string; timestamp: string; signature: string; body: Buffer };

const TOLERANCE_SECONDS = 5 * 60;

function isSame(one: string, other: string): boolean {
  const [first, second] = [Buffer.from(one), Buffer.from(other)];
  return first.length === second.length && timingSafeEqual(first, second);
}

function expectedSignature(
  secret: string,
  webhook: SignedWebhook,
  timestampSeconds: number,
): string | undefined {
  try {
    return signStandard({ secrets: [secret], id: webhook.id, timestampSeconds, body: webhook.body });
  } catch (error) {
    if (error instanceof UnusableSignatureInputError) {
      return undefined;
    }
    throw error;
  }
}

/**
 * Whether one of the signatures of a webhook is made with one of the secrets, over exactly these bytes,
 * within five minutes: the check of Standard Webhooks. Never throws.
 */
function isSignedWithAny(webhook: SignedWebhook, secrets: readonly string[], nowMs: number): boolean {
  if (!/^\d{1,15}$/.test(webhook.timestamp)) {
    return false;
  }
  const timestampSeconds = Number(webhook.timestamp);
  if (Math.abs(nowMs / 1000 - timestampSeconds) > TOLERANCE_SECONDS) {
    return false;
  }
  const given = webhook.signature.split(' ');
  return secrets.some((secret) => {
    const expected = expectedSignature(secret, webhook, timestampSeconds);
    return expected !== undefined && given.some((signature) => isSame(signature, expected));
  });
}
