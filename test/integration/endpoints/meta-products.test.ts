import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { addEndpoint } from '../../../src/features/endpoints/endpoints.ts';
import { memberAt, PRODUCTS, type ProductWebhook } from '../../support/cloud-api-products.ts';
import { takeIn } from '../../support/take-in.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import type { Behaviour } from '../../support/webhook-receiver.ts';
import { WABA } from '../api/api-harness.ts';
import { startReceiving } from './meta-receiver.ts';

/** The webhook ends of products, as their sources behave, as endpoints of the format meta. */
const APP_SECRET = 'the app secret of the product';
const VERIFY_TOKEN = 'token-of-the-product';
const FIXTURES = { text: 'in_text', image: 'in_image_caption_url', status: 'st_sent_v24' };

/** How a product responds to the verification of its address, and to webhooks. */
function productServer({ challenge, checksSignature }: ProductWebhook): Behaviour {
  return ({ path, headers, body }, response) => {
    const { searchParams } = new URL(path, 'http://product.example');
    const value = searchParams.get('hub.challenge');
    if (value !== null) {
      const isRight = searchParams.get('hub.verify_token') === VERIFY_TOKEN;
      const type = challenge === 'number' ? 'application/json' : 'text/plain';
      const answer = challenge === 'number' ? JSON.stringify(Number(value)) : value;
      response.writeHead(isRight ? 200 : 401, { 'content-type': type }).end(isRight ? answer : '');
      return isRight ? 200 : 401;
    }
    const expected = `sha256=${createHmac('sha256', APP_SECRET).update(body).digest('hex')}`;
    const isRefused = checksSignature && headers['x-hub-signature-256'] !== expected;
    response.writeHead(isRefused ? 401 : 200).end();
    return isRefused ? 401 : 200;
  };
}

describe.each(PRODUCTS)('$product', ({ webhook }) => {
  test('verifies its address, accepts the signature and finds all that it reads', async () => {
    const { database, tools, receiver, attempt } = await startReceiving(productServer(webhook));
    const { id } = await addEndpoint(tools, WABA, {
      url: receiver.url,
      format: 'meta',
      appSecret: APP_SECRET,
      verifyToken: VERIFY_TOKEN,
    });
    receiver.received.length = 0;
    await takeIn(database, ...Object.values(FIXTURES).map(fixtureBody));
    const received = await attempt(id);
    expect(received.map(({ status }) => status)).toEqual([200, 200, 200]);
    const bodies = received.map(({ body }) => JSON.parse(body));
    const VALUE = 'entry.0.changes.0.value';
    const of = {
      text: bodies.find((body) => memberAt(body, `${VALUE}.messages.0.type`) === 'text'),
      image: bodies.find((body) => memberAt(body, `${VALUE}.messages.0.type`) === 'image'),
      status: bodies.find((body) => memberAt(body, `${VALUE}.statuses`) !== undefined),
    };
    for (const kind of ['text', 'image', 'status'] as const) {
      const missing = webhook.reads[kind].filter((path) => memberAt(of[kind], path) === undefined);
      expect({ kind, missing }).toEqual({ kind, missing: [] });
    }
  });
});
