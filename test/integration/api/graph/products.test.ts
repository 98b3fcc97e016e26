import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApiKeyScope } from '../../../../src/features/keys/api-key.ts';
import { filled, memberAt, PRODUCTS, type ProductCall } from '../../../support/cloud-api-products.ts';
import { type SendingStack, startSendingStack } from '../../messages/send/sending-stack.ts';
import { addFacadeKey } from './facade-key.ts';
import { receivedPicture } from './received-picture.ts';

/** The requests of products, as their sources write them, against the facade with the sandbox behind it. */
const JPEG = Buffer.concat([
  Buffer.from('ffd8ffe000104a46494600010100000100010000', 'hex'),
  Buffer.alloc(64, 7),
]);

let stack: SendingStack;

beforeAll(async () => {
  stack = await startSendingStack();
});
afterAll(() => stack.stop());

/** The values that the calls of a product name: its tenant with a picture that was received. */
async function valuesOfProduct(scopes: readonly ApiKeyScope[]): Promise<Record<string, string>> {
  const { wabaId, number } = await stack.newTenant();
  const { message, media } = await receivedPicture(stack.database, { wabaId, number });
  const key = await addFacadeKey(stack.database, wabaId, scopes);
  await stack.makeTemplate(wabaId, { name: 'order_update', language: 'en_US', category: 'UTILITY' });
  return { waba: wabaId, number, key, received: message, 'received media': media };
}

let customers = 0;

/** A request as the product's HTTP client writes it. */
async function payloadOf({ body, form, urlEncoded }: ProductCall) {
  if (body !== undefined) return { type: 'application/json', payload: JSON.stringify(body) };
  if (urlEncoded !== undefined)
    return { type: 'application/x-www-form-urlencoded', payload: String(new URLSearchParams(urlEncoded)) };
  if (form === undefined) return null;
  const parts = new FormData();
  for (const [name, value] of form) {
    if (value === '@file') parts.append(name, new Blob([JPEG], { type: 'image/jpeg' }), 'mug.jpg');
    else parts.append(name, value);
  }
  const encoded = new Response(parts);
  const payload = Buffer.from(await encoded.arrayBuffer());
  return { type: encoded.headers.get('content-type') ?? '', payload };
}

async function ask(call: ProductCall, key: string) {
  const sent = await payloadOf(call);
  const withToken = `${call.path}${call.path.includes('?') ? '&' : '?'}access_token=${key}`;
  const answer = await stack.app.inject({
    method: call.method,
    url: `/graph${call.token === 'query' ? withToken : call.path}`,
    headers: {
      ...(call.token !== 'query' && { authorization: `Bearer ${key}` }),
      ...(sent !== null && { 'content-type': sent.type }),
    },
    ...(sent !== null && { payload: sent.payload }),
  });
  return { status: answer.statusCode, json: answer.json() as unknown };
}

describe.each(PRODUCTS)('$product', ({ calls, page, scopes, source }) => {
  const values: Record<string, string> = {};

  beforeAll(async () => {
    Object.assign(values, await valuesOfProduct(scopes));
  });

  test('has a page that names the scopes of its key', () => {
    const text = readFileSync(new URL(`../../../../docs/tenants/cloud-api/${page}`, import.meta.url), 'utf8');
    const named = [...new Set([...text.matchAll(/`(graph(?:_\w+)?)`/g)].map(([, scope]) => scope))];
    expect(named.toSorted()).toEqual(scopes);
  });

  test('has a source for its requests', () => {
    for (const place of source) expect(place).toMatch(/ @ [0-9a-f]{40}$|^npm \S+@[\d.]+ /);
  });

  test.each(calls.map((call) => ({ ...call, wanted: call.status === undefined ? 'works' : 'is refused' })))(
    '$name $wanted as it expects',
    async (call) => {
      values.to = `1202558${1_000 + customers++}`;
      const { status, json } = await ask(filled(call, values), values.key ?? '');
      expect({ status, json }).toMatchObject({ status: call.status ?? 200 });
      if (call.status !== undefined) {
        expect(memberAt(json, 'error')).toMatchObject({ code: call.code, type: 'OAuthException' });
        expect(memberAt(json, 'error.message')).toEqual(expect.any(String));
      }
      for (const path of call.reads ?? [])
        expect({ path, value: memberAt(json, path) ?? null }).not.toMatchObject({ value: null });
      for (const [path, value] of Object.entries(call.equals ?? {}))
        expect(memberAt(json, path)).toEqual(value);
      if (call.keeps !== undefined) values[call.keeps] = String(memberAt(json, 'id'));
    },
  );
});
