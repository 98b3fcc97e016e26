import { createServer } from 'node:http';
import { onTestFinished } from 'vitest';
import { startUpstreamServer, type UpstreamServerConfig } from '../../../../dev/sandbox/upstream-server.ts';
import { listenInTest } from '../../../support/listen.ts';

export const APP_SECRET = 'test-app-secret';
const VERIFY_TOKEN = 'test-verify-token';

export type RecordedWebhook = { at: number; headers: Record<string, string | undefined>; bytes: Buffer };

/** A plain HTTP server in the place of the ingress: keeps exact bytes, answers as told. */
async function startIngress(): Promise<{
  url: string;
  webhooks: RecordedWebhook[];
  statuses: number[];
}> {
  const webhooks: RecordedWebhook[] = [];
  const statuses: number[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const url = new URL(request.url ?? '/', 'http://ingress');
      if (request.method === 'GET') {
        const isKnown = url.searchParams.get('hub.verify_token') === VERIFY_TOKEN;
        response.writeHead(isKnown ? 200 : 403).end(url.searchParams.get('hub.challenge'));
        return;
      }
      const headers = request.headers as RecordedWebhook['headers'];
      webhooks.push({ at: performance.now(), headers, bytes: Buffer.concat(chunks) });
      response.writeHead(url.pathname === '/upstream/webhook' ? (statuses.shift() ?? 200) : 404).end();
    });
  });
  const port = await listenInTest(server);
  return { url: `http://127.0.0.1:${port}`, webhooks, statuses };
}

/** A stand-in platform with an ingress of its own; both stop with the test. */
export async function startSandbox(config: Partial<UpstreamServerConfig> = {}) {
  const ingress = await startIngress();
  const server = await startUpstreamServer({
    host: '127.0.0.1',
    port: 0,
    appSecret: APP_SECRET,
    verifyToken: VERIFY_TOKEN,
    ingressUrl: ingress.url,
    statusDelayMs: 15,
    ...config,
  });
  onTestFinished(() => server.close());
  return { url: server.url, ingress, close: server.close };
}

/** A response whose JSON tests may look into without asking for types first. */
export type JsonResponse = Omit<Response, 'json'> & { json: () => Promise<ReturnType<typeof JSON.parse>> };

/** A plain call. */
export function call(url: string, init: RequestInit = {}): Promise<JsonResponse> {
  return fetch(url, init);
}

/** A call of the Graph API with a token. */
export function graph(url: string, init: RequestInit = {}): Promise<JsonResponse> {
  return fetch(url, { ...init, headers: { authorization: 'Bearer any-token', ...init.headers } });
}

/** Posts JSON. */
export function postJson(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<JsonResponse> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer any-token', ...headers },
    body: JSON.stringify(body),
  });
}

/** Waits until a condition holds, at most 5 seconds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + 5000;
  while (!(await condition())) {
    if (performance.now() > endsAt) {
      throw new Error('The condition did not come true within 5 s.');
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
