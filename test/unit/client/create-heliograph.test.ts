import { expect, test } from 'vitest';

type Options = {
  baseUrl: string;
  apiKey?: string;
  platformKey?: string;
  fetch: (input: string | URL | Request) => Promise<Response>;
};
type Create = (options: Options) => {
  getAccountIdentity(): Promise<unknown>;
  platform: { getTenant(options: { path: { externalId: string } }): Promise<unknown> };
};

/** By its address: what is generated is checked with the options of its own package. */
const ADDRESS = new URL('../../../clients/typescript/src/create-heliograph.ts', import.meta.url).href;
const { createHeliograph } = (await import(ADDRESS)) as { createHeliograph: Create };

const KEY = `ck_${'a1'.repeat(32)}`;
const BASE_URL = 'https://gateway.example';

/** A client, and the Authorization headers of its requests. */
function clientWith(baseUrl: string, apiKey: string | undefined, platformKey?: string) {
  const sent: string[] = [];
  const fetch = async (input: string | URL | Request) => {
    const request = input as Request;
    sent.push(`${request.url} ${request.headers.get('authorization')}`);
    return new Response('{"status":"ok"}', { headers: { 'content-type': 'application/json' } });
  };
  return {
    client: createHeliograph({
      baseUrl,
      ...(apiKey !== undefined && { apiKey }),
      ...(platformKey !== undefined && { platformKey }),
      fetch,
    }),
    sent,
  };
}

test.each([`${KEY}\n`, `${KEY}\r\n`, ` ${KEY} `, `\ufeff${KEY}`, `\u00a0${KEY}`])(
  'a key from a file works: %j',
  async (key) => {
    const { client, sent } = clientWith(`${BASE_URL}/`, key);
    await client.getAccountIdentity();
    expect(sent).toEqual([`${BASE_URL}/me Bearer ${KEY}`]);
  },
);

test.each([
  `${KEY}\n${KEY}`,
  `Bearer ${KEY}`,
  `"${KEY}"`,
  `${KEY.slice(0, 30)} ${KEY.slice(30)}`,
  `${KEY}é`,
  '',
])('another one is refused when the client is made, and not shown: %j', (key) => {
  expect(() => clientWith(BASE_URL, key)).toThrow(TypeError);
  try {
    clientWith(BASE_URL, key);
  } catch (error) {
    expect(String((error as Error).stack)).not.toContain('a1a1');
  }
});

test.each([
  'gateway.example',
  '127.0.0.1:8080',
  'localhost:8080',
  '"https://gateway.example"',
  'ftp://x',
  '',
])('an address that is none is refused when the client is made: %j', (address) => {
  expect(() => clientWith(address, KEY)).toThrow(/^baseUrl must be like https:\/\/gateway\.example/);
});

test.each([`${BASE_URL}\n`, ` ${BASE_URL}/ `])(
  'spaces around an address are dropped: %j',
  async (address) => {
    const { client, sent } = clientWith(address, KEY);
    await client.getAccountIdentity();
    expect(sent).toEqual([`${BASE_URL}/me Bearer ${KEY}`]);
  },
);

const PLATFORM_KEY = `hp_${'b2'.repeat(32)}`;

test('each API gets its own key, and no other', async () => {
  const { client, sent } = clientWith(BASE_URL, KEY, `${PLATFORM_KEY}\n`);
  await client.platform.getTenant({ path: { externalId: 'acme' } });
  await client.getAccountIdentity();
  expect(sent).toEqual([
    `${BASE_URL}/api/platform/tenants/acme Bearer ${PLATFORM_KEY}`,
    `${BASE_URL}/me Bearer ${KEY}`,
  ]);
});

test('a program of the platform API needs no other key, and gives its own to no other API', async () => {
  const { client, sent } = clientWith(BASE_URL, undefined, PLATFORM_KEY);
  await client.platform.getTenant({ path: { externalId: 'acme' } });
  await client.getAccountIdentity();
  expect(sent).toEqual([
    `${BASE_URL}/api/platform/tenants/acme Bearer ${PLATFORM_KEY}`,
    `${BASE_URL}/me null`,
  ]);
  expect(() => clientWith(BASE_URL, KEY).client.platform).toThrow(TypeError);
  expect(() => clientWith(BASE_URL, undefined)).toThrow(TypeError);
  expect(() => clientWith(BASE_URL, KEY, `Bearer ${PLATFORM_KEY}`)).toThrow(TypeError);
});
