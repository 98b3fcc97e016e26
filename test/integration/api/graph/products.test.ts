import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { filled, memberAt, PRODUCTS, type ProductCall } from '../../../support/cloud-api-products.ts';
import { takeIn } from '../../../support/take-in.ts';
import { fixtureBody } from '../../../support/upstream-fixtures.ts';
import { NUMBER, type SendingStack, startSendingStack, WABA } from '../../messages/send/sending-stack.ts';
import { addFacadeKey } from './facade-key.ts';

/** The requests of products, as their sources write them, against the facade with the sandbox behind it. */
const JPEG = Buffer.concat([
  Buffer.from('ffd8ffe000104a46494600010100000100010000', 'hex'),
  Buffer.alloc(64, 7),
]);

let stack: SendingStack;
let key: string;
let received: { message: string; media: string };

beforeAll(async () => {
  stack = await startSendingStack();
  key = await addFacadeKey(stack.database, WABA);
  await takeIn(stack.database, fixtureBody('in_image_caption_url'));
  await execute(
    stack.database,
    `update media set state = 'stored', object_key = 'k1', served_type = 'image/jpeg', size_bytes = 5, sha256 = 'ab'`,
  );
  const [media] = await query<{ media: string; message: string }>(
    stack.database,
    `select a.upstream_media_id as media, m.upstream_id as message from media a join messages m on m.id = a.message_id`,
  );
  if (media === undefined) throw new Error('the picture is missing');
  received = media;
});
afterAll(() => stack.stop());

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

async function ask(call: ProductCall) {
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

describe.each(PRODUCTS)('$product', ({ calls, source }) => {
  const values: Record<string, string> = {};

  test('has a source for its requests', () => {
    for (const place of source) expect(place).toMatch(/ @ [0-9a-f]{40}$|^npm \S+@[\d.]+ /);
  });

  test.each(calls.map((call) => ({ ...call, wanted: call.status === undefined ? 'works' : 'is refused' })))(
    '$name $wanted as it expects',
    async (call) => {
      Object.assign(values, { waba: WABA, number: NUMBER, key, to: `1202558${1_000 + customers++}` });
      Object.assign(values, { received: received.message, 'received media': received.media });
      const { status, json } = await ask(filled(call, values));
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
