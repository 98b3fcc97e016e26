import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  HeliographConnectionError,
  HeliographTimeoutError,
} from '../../../clients/typescript/src/heliograph-error.ts';
import { entriesOf } from '../../../clients/typescript/src/paging.ts';
import { retryingFetch } from '../../../clients/typescript/src/retrying-fetch.ts';

const API = 'https://gateway.example/api/external';
const DEFAULTS = { retries: 3, timeoutMs: 30_000, maxWaitMs: 60_000 };
const MESSAGE = { phoneNumberId: '1', to: '+12025550143', type: 'text', text: { body: 'Hi' } } as const;

const json = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', ...headers } });
const refused = (status: number, headers?: Record<string, string>) =>
  json(status, { error: { code: 'service_unavailable', message: 'Later.', requestId: 'req_1' } }, headers);
const OK = () => json(200, {});

/** A client whose requests get these answers, one after the other; an Error stands for a broken connection. */
function clientWith(answers: (() => Response | Error)[], options: object = {}) {
  const requests: { method: string; key: string | null; body: string; atMs: number }[] = [];
  const fetch = async (input: string | URL | Request) => {
    const request = input as Request;
    const key = request.headers.get('idempotency-key');
    requests.push({ method: request.method, key, body: await request.text(), atMs: Date.now() });
    const answer = answers[requests.length - 1]?.() ?? new Error('asked too often');
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const send = retryingFetch(fetch, { ...DEFAULTS, ...options });
  const client = {
    listEvents: (init: RequestInit = {}) => send(`${API}/events`, init),
    searchConversations: () => send(`${API}/conversations/search`, { method: 'POST', body: '{}' }),
    createWebhookEndpoint: () => send(`${API}/webhook-endpoints`, { method: 'POST', body: '{}' }),
    sendMessage: (headers: Record<string, string> = {}) =>
      send(`${API}/messages`, { method: 'POST', body: JSON.stringify(MESSAGE), headers }),
  };
  const waits = () => requests.slice(1).map(({ atMs }, n) => atMs - (requests[n]?.atMs ?? 0));
  return { client, requests, waits };
}

beforeEach(() => {
  vi.useFakeTimers({ shouldAdvanceTime: false, now: new Date('2026-11-26T10:00:00Z') });
});
afterEach(() => vi.useRealTimers());

/** Lets time pass until a promise is settled. */
async function settled<T>(promise: Promise<T>): Promise<PromiseSettledResult<T>> {
  let isDone = false;
  const result = Promise.allSettled([promise]).then(([one]) => {
    isDone = true;
    return one;
  });
  for (let steps = 0; !isDone && steps < 5_000; steps += 1) await vi.advanceTimersByTimeAsync(100);
  return await result;
}

describe('a client repeats', () => {
  test('reads after temporary answers and broken connections, each time later, with jitter', async () => {
    const broken = () => new TypeError('fetch failed');
    const { client, requests, waits } = clientWith([() => refused(503), broken, () => refused(429), OK]);
    expect(await settled(client.listEvents())).toMatchObject({ status: 'fulfilled' });
    expect(requests).toHaveLength(4);
    for (const [n, wait] of waits().entries()) {
      expect(wait).toBeGreaterThanOrEqual(250 * 2 ** n);
      expect(wait).toBeLessThanOrEqual(500 * 2 ** n + 100);
    }
  });

  test('a send with the key and the body that it had, and makes a key where there is none', async () => {
    for (const given of [undefined, 'order-7']) {
      const answers = [() => new TypeError('reset'), () => refused(503), () => json(200, {})];
      const { client, requests } = clientWith(answers);
      const headers: Record<string, string> = given === undefined ? {} : { 'Idempotency-Key': given };
      expect((await settled(client.sendMessage(headers))).status).toBe('fulfilled');
      const [key] = new Set(requests.map((request) => request.key));
      expect(key).toMatch(given === undefined ? /^[0-9a-f]{32}$/ : /^order-7$/);
      expect(new Set(requests.map((request) => `${request.key} ${request.body}`))).toEqual(
        new Set([`${key} ${JSON.stringify(MESSAGE)}`]),
      );
      expect(requests).toHaveLength(3);
    }
  });

  test('different sends with different keys', async () => {
    const { client, requests } = clientWith([() => json(200, {}), () => json(200, {})]);
    await settled(client.sendMessage());
    await settled(client.sendMessage());
    expect(new Set(requests.map(({ key }) => key)).size).toBe(2);
  });

  test.for([
    ['seconds', '7', 7_000],
    ['a date', 'Thu, 26 Nov 2026 10:00:09 GMT', 9_000],
  ] as const)('after the time that Retry-After names as %s', async ([, value, expectedMs]) => {
    const { client, waits } = clientWith([() => refused(503, { 'retry-after': value }), OK]);
    await settled(client.listEvents());
    expect(waits()[0]).toBeGreaterThanOrEqual(expectedMs);
    expect(waits()[0]).toBeLessThan(expectedMs + 1_100);
  });

  test('a send whose key is in flight, and a search, which only reads', async () => {
    const inFlight = clientWith([() => refused(409, { 'retry-after': '1' }), () => json(200, {})]);
    await settled(inFlight.client.sendMessage());
    expect(inFlight.requests).toHaveLength(2);
    const search = clientWith([() => refused(503), OK]);
    await settled(search.client.searchConversations());
    expect(search.requests).toHaveLength(2);
  });

  test('an answer of JSON that broke off', async () => {
    const brokenOff = () =>
      new Response(new ReadableStream({ pull: (controller) => controller.error(new Error('reset')) }), {
        headers: { 'content-type': 'application/json' },
      });
    const { client, requests } = clientWith([brokenOff, OK]);
    expect((await settled(client.listEvents())).status).toBe('fulfilled');
    expect(requests).toHaveLength(2);
  });
});

describe('a client does not repeat', () => {
  const once = async (answer: () => Response | Error, call: 'send' | 'read' | 'write', options = {}) => {
    const { client, requests } = clientWith([answer, OK], options);
    const calls = {
      send: () => client.sendMessage(),
      read: () => client.listEvents(),
      write: () => client.createWebhookEndpoint(),
    };
    const result = await settled<unknown>(calls[call]());
    expect(requests).toHaveLength(1);
    return result;
  };

  test('what may not be harmless to repeat', async () => {
    expect(await once(() => refused(503), 'write')).toMatchObject({ value: { status: 503 } });
    const broken = (await once(() => new TypeError('reset'), 'write')) as PromiseRejectedResult;
    expect(broken.reason).toBeInstanceOf(HeliographConnectionError);
    expect(broken.reason.cause).toMatchObject({ message: 'reset' });
  });

  test('final answers, the repeated first answer to a key, and a conflict', async () => {
    for (const status of [400, 401, 403, 404, 409, 422, 424]) {
      expect(await once(() => refused(status), 'send')).toMatchObject({ value: { status } });
    }
    await once(() => refused(503, { 'idempotent-replayed': 'true' }), 'send');
  });

  test('anything with retries: 0, and after a Retry-After that is too long', async () => {
    await once(() => refused(503), 'read', { retries: 0 });
    await once(() => refused(503, { 'retry-after': '3600' }), 'read');
  });

  test('more often than it was asked to', async () => {
    const { client, requests } = clientWith(
      Array(10).fill(() => refused(503)),
      { retries: 5 },
    );
    expect(await settled(client.listEvents())).toMatchObject({ value: { status: 503 } });
    expect(requests).toHaveLength(6);
  });

  test('what the caller gave up, also while it waits', async () => {
    const { client, requests } = clientWith([() => refused(503, { 'retry-after': '50' }), OK]);
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 2_000);
    const result = await settled(client.listEvents({ signal: controller.signal }));
    expect(result).toMatchObject({ status: 'rejected', reason: { name: 'AbortError' } });
    expect(requests).toHaveLength(1);
  });
});

describe('a time-out', () => {
  const hanging = (signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });

  test('ends a request to which nothing answers', async () => {
    const fetch = async (input: string | URL | Request) => await hanging((input as Request).signal);
    const send = retryingFetch(fetch, { ...DEFAULTS, timeoutMs: 5_000, retries: 0 });
    const began = Date.now();
    const result = await settled(send(`${API}/events`));
    expect((result as PromiseRejectedResult).reason).toBeInstanceOf(HeliographTimeoutError);
    expect(Date.now() - began).toBeLessThan(5_500);
  });

  test('ends a download that stalls, and not one that is slow or read slowly', async () => {
    let stalls = false;
    const fetch = async (input: string | URL | Request) => {
      const { signal } = input as Request;
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          if (stalls) return await hanging(signal);
          await new Promise((resolve) => setTimeout(resolve, 4_000));
          controller.enqueue(new Uint8Array(1));
        },
      });
      return new Response(body, { headers: { 'content-type': 'image/jpeg' } });
    };
    const send = retryingFetch(fetch, { ...DEFAULTS, timeoutMs: 5_000 });
    const read = async () => {
      const { body } = await send('https://gateway.example/received_media/1');
      if (body === null) throw new Error('no body');
      const reader = body.getReader();
      for (let n = 0; n < 3; n += 1) {
        expect((await reader.read()).value).toHaveLength(1);
        await new Promise((resolve) => setTimeout(resolve, 20_000));
      }
      stalls = true;
      for (;;) await reader.read();
    };
    const result = await settled(read());
    expect((result as PromiseRejectedResult).reason).toBeInstanceOf(HeliographTimeoutError);
  });
});

describe('the iterators of the client', () => {
  test('ask for a page when it is needed, and end with the last', async () => {
    const pages = [
      { data: [{ id: '1' }, { id: '2' }], hasMore: true, nextCursor: 'b' },
      { data: [{ id: '3' }], hasMore: false, nextCursor: 'c' },
    ];
    const asked: (string | undefined)[] = [];
    const ids = entriesOf(async (cursor) => {
      asked.push(cursor);
      return { data: pages[asked.length - 1] ?? { data: [], hasMore: false, nextCursor: null } };
    }, 'a');
    expect([(await ids.next()).value?.id, (await ids.next()).value?.id]).toEqual(['1', '2']);
    expect(asked).toEqual(['a']);
    expect((await ids.next()).value?.id).toBe('3');
    expect((await ids.next()).done).toBe(true);
    expect(asked).toEqual(['a', 'b']);
  });

  test('are there for every operation that has a cursor', () => {
    const source = (file: string) =>
      readFileSync(new URL(`../../../clients/typescript/src/${file}`, import.meta.url), 'utf8');
    const withCursor = [
      ...source('generated/types.gen.ts').matchAll(/export type (\w+)Data = \{\n(.*?)\n\};/gs),
    ].filter(
      ([, , text = '']) =>
        /^ {8}cursor\?:/m.test(text) || /body\??: (?:Conversation|OptOut)Search/.test(text),
    );
    const names = withCursor.map(([, name = '']) => name).filter((name) => name !== 'StreamEvents');
    expect(names.length).toBeGreaterThanOrEqual(9);
    for (const name of names) {
      const method = `${name.charAt(0).toLowerCase()}${name.slice(1)}`;
      expect(source('heliograph.ts')).toContain(`this.${method}(`);
    }
  });
});
