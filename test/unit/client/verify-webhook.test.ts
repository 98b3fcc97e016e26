import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { errorOf, HeliographError } from '../../../clients/typescript/src/heliograph-error.ts';
import { verifyWebhook, verifyWebhookWithPublicKey } from '../../../clients/typescript/src/verify-webhook.ts';
import {
  newSigningKey,
  newWebhookSecret,
  publicKeyOf,
  signStandard,
} from '../../../src/endpoints/webhook-signature.ts';

const SECRET = newWebhookSecret();

function signedHeaders(body: string, at = new Date()): Record<string, string> {
  return {
    'Webhook-Id': 'evt_1',
    'Webhook-Timestamp': String(Math.floor(at.getTime() / 1000)),
    'Webhook-Signature': new Webhook(SECRET).sign('evt_1', at, body),
  };
}

describe('verifyWebhook of the client', () => {
  const body = '{"eventType":"test","data":{"message":"é 👋"}}';

  test('gives the event of a signed body, as text or bytes, whatever the kind of headers', () => {
    const headers = signedHeaders(body);
    const lists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
    for (const given of [headers, lists, new Headers(headers)]) {
      for (const payload of [body, new TextEncoder().encode(body)]) {
        expect(verifyWebhook(payload, given, SECRET)).toEqual(JSON.parse(body));
      }
    }
  });

  test('throws for another body, another secret, missing headers and a signature that is old', () => {
    const headers = signedHeaders(body);
    const old = signedHeaders(body, new Date(Date.now() - 10 * 60_000));
    expect(() => verifyWebhook(`${body} `, headers, SECRET)).toThrow();
    expect(() => verifyWebhook(`\ufeff${body}`, headers, SECRET)).toThrow();
    expect(() => verifyWebhook(new TextEncoder().encode(`\ufeff${body}`), headers, SECRET)).toThrow();
    expect(() => verifyWebhook(body, headers, newWebhookSecret())).toThrow();
    expect(() => verifyWebhook(body, {}, SECRET)).toThrow();
    expect(() => verifyWebhook(body, { ...headers, 'Webhook-Signature': undefined }, SECRET)).toThrow();
    expect(() => verifyWebhook(body, old, SECRET)).toThrow();
  });
});

describe('verifyWebhookWithPublicKey of the client', () => {
  const body = '{"eventType":"test","data":{"message":"é 👋"}}';
  const [old, newest] = [newSigningKey(), newSigningKey()];

  function headersOf(secondsAgo = 0): Record<string, string> {
    const timestampSeconds = Math.floor(Date.now() / 1_000) - secondsAgo;
    const secrets = [SECRET, newest, old];
    const list = signStandard({ secrets, id: 'evt_1', timestampSeconds, body: Buffer.from(body) });
    return {
      'webhook-id': 'evt_1',
      'webhook-timestamp': String(timestampSeconds),
      'webhook-signature': list,
    };
  }

  test('gives the event of what the service signed, with either key of a rotation', async () => {
    for (const key of [newest, old]) {
      for (const payload of [body, new TextEncoder().encode(body)]) {
        const event = await verifyWebhookWithPublicKey(payload, headersOf(), publicKeyOf(key));
        expect(event).toEqual(JSON.parse(body));
      }
    }
  });

  test('rejects another body, another key, missing headers, HMAC alone and what is old', async () => {
    const key = publicKeyOf(newest);
    const refused = async (payload: string, headers: Record<string, string>, publicKey = key) =>
      await expect(verifyWebhookWithPublicKey(payload, headers, publicKey)).rejects.toThrow();
    await refused(`${body} `, headersOf());
    await refused(body, headersOf(), publicKeyOf(newSigningKey()));
    await refused(body, {});
    await refused(body, signedHeaders(body));
    await refused(body, headersOf(600));
    await refused(body, { ...headersOf(), 'webhook-timestamp': 'x' });
  });
});

describe('an error of the client', () => {
  test('holds the code, the details and the wait of an answer', () => {
    const details = { code: 'idempotency_key_in_flight', message: 'Wait.', requestId: 'req_1' };
    const response = new Response(null, { status: 409, headers: { 'retry-after': '1' } });
    const error = errorOf({ error: details }, response);
    expect(error).toBeInstanceOf(HeliographError);
    expect(error).toMatchObject({ status: 409, code: details.code, details, retryAfterSeconds: 1 });
    expect(String(error)).toBe('HeliographError: Wait. (req_1)');
  });

  test('is there for answers that are not the service’s, and is what fetch threw when there is none', () => {
    for (const body of ['<html>', null, {}, { error: 'x' }, { error: null }, 5]) {
      const error = errorOf(body, new Response(null, { status: 502 }));
      expect(error).toMatchObject({ status: 502, code: 'unknown', details: null, retryAfterSeconds: null });
    }
    const failure = new TypeError('fetch failed');
    expect(errorOf(failure, undefined)).toBe(failure);
  });
});
