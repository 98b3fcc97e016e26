import { createHmac } from 'node:crypto';
import { Agent, request } from 'undici';

/** How the signature header is made; the wrong forms are for tests of the receiver. */
export type SignatureForm = 'valid' | 'wrong' | 'missing';

/** What the ingress answered to one webhook. */
export type WebhookAnswer = { status: number; ms: number; responseBody: string };

/** Thrown when nothing answered at the ingress. */
export class IngressUnreachableError extends Error {
  override name = 'IngressUnreachableError';
}

/** Signs bodies and posts them to the ingress. */
export type WebhookSender = {
  /** @throws IngressUnreachableError when no HTTP answer came. */
  send: (body: Buffer, signature?: SignatureForm) => Promise<WebhookAnswer>;
  /** Asks the ingress to prove that it knows the verify token. */
  verify: () => Promise<WebhookAnswer & { challenge: string }>;
  close: () => Promise<void>;
};

const TIMEOUT_MS = 20_000;
const MAX_ANSWER_CHARACTERS = 2000;

/** The value of X-Hub-Signature-256: HMAC-SHA256 of the exact bytes with the app secret. */
function upstreamSignature(appSecret: string, body: Buffer): string {
  return `sha256=${createHmac('sha256', appSecret).update(body).digest('hex')}`;
}

function signatureHeader(appSecret: string, body: Buffer, form: SignatureForm): Record<string, string> {
  if (form === 'missing') {
    return {};
  }
  const secret = form === 'wrong' ? `${appSecret}-wrong` : appSecret;
  return { 'x-hub-signature-256': upstreamSignature(secret, body) };
}

/** Creates a sender for the ingress at ingressUrl (without a path). */
export function createWebhookSender(config: {
  appSecret: string;
  verifyToken: string;
  ingressUrl: string;
}): WebhookSender {
  const agent = new Agent({ headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
  const url = new URL('/upstream/webhook', config.ingressUrl);

  async function exchange(options: {
    url: URL;
    method: 'GET' | 'POST';
    headers?: Record<string, string>;
    body?: Buffer;
  }): Promise<WebhookAnswer> {
    const startedAt = performance.now();
    try {
      const { url: target, ...init } = options;
      const response = await request(target, { dispatcher: agent, ...init });
      const text = await response.body.text();
      const ms = Math.round((performance.now() - startedAt) * 10) / 10;
      return { status: response.statusCode, ms, responseBody: text.slice(0, MAX_ANSWER_CHARACTERS) };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new IngressUnreachableError(`No answer from ${url.href}: ${reason}`, { cause: error });
    }
  }

  return {
    send: (body, form = 'valid') => {
      const headers = {
        'content-type': 'application/json',
        'user-agent': 'facebookexternalua',
        ...signatureHeader(config.appSecret, body, form),
      };
      return exchange({ url, method: 'POST', headers, body });
    },
    verify: async () => {
      const challenge = String(Math.floor(1_000_000_000 + Math.random() * 1_000_000_000));
      const target = new URL(url);
      target.searchParams.set('hub.mode', 'subscribe');
      target.searchParams.set('hub.challenge', challenge);
      target.searchParams.set('hub.verify_token', config.verifyToken);
      return { ...(await exchange({ url: target, method: 'GET' })), challenge };
    },
    close: () => agent.destroy(),
  };
}
