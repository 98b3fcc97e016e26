import fc from 'fast-check';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { errorOf, HeliographError } from '../../../clients/typescript/src/heliograph-error.ts';
import { verifyWebhook, verifyWebhookWithPublicKey } from '../../../clients/typescript/src/verify-webhook.ts';
import {
  newSigningKey,
  newWebhookSecret,
  publicKeyOf,
  signStandard,
} from '../../../src/engine/endpoint/webhook-signature.ts';

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

describe('whoever sends it, a verifier throws what it documents', () => {
  const now = () => String(Math.floor(Date.now() / 1_000));
  const PUBLIC = publicKeyOf(newSigningKey());
  const noise = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.base64String({ maxLength: 100 }),
    fc.constantFrom('***', 'é', '=', '', '\u0000', 'A', '\ud800', '%%%'),
  );
  const entry = fc
    .tuple(fc.constantFrom('v1,', 'v1a,', 'v2,', 'v1', 'v1a', ''), noise)
    .map((parts) => parts.join(''));
  const headers = fc.record(
    {
      'webhook-id': noise,
      'webhook-timestamp': fc.oneof(
        fc.constant(null).map(now),
        fc.constantFrom('9'.repeat(4_301), '1e3', '-1', 'Infinity', '0x10', ' 1', '٣'),
        noise,
      ),
      'webhook-signature': fc.array(entry, { maxLength: 4 }).map((list) => list.join(' ')),
    },
    { requiredKeys: [] },
  );
  const payload = fc.oneof(fc.string({ unit: 'binary' }), fc.uint8Array(), fc.json());

  test('with a secret', () => {
    fc.assert(
      fc.property(payload, headers, (body, given) => {
        expect(() => verifyWebhook(body, given, SECRET)).toThrow(WebhookVerificationError);
      }),
      { numRuns: 2_000 },
    );
  });

  test('with a public key', async () => {
    await fc.assert(
      fc.asyncProperty(payload, headers, async (body, given) => {
        await expect(verifyWebhookWithPublicKey(body, given, PUBLIC)).rejects.toThrow(
          WebhookVerificationError,
        );
      }),
      { numRuns: 1_000 },
    );
  });

  test('a body that is signed and no JSON is refused too', async () => {
    const key = newSigningKey();
    for (const body of ['', 'no JSON', '{"a":', '\u0000']) {
      const timestampSeconds = Number(now());
      const list = signStandard({
        secrets: [SECRET, key],
        id: 'evt_1',
        timestampSeconds,
        body: Buffer.from(body),
      });
      const given = {
        'webhook-id': 'evt_1',
        'webhook-timestamp': String(timestampSeconds),
        'webhook-signature': list,
      };
      expect(() => verifyWebhook(body, given, SECRET)).toThrow(WebhookVerificationError);
      const checked = verifyWebhookWithPublicKey(body, given, publicKeyOf(key));
      await expect(checked).rejects.toThrow(WebhookVerificationError);
    }
  });

  test.each(['', 'whsec_', 'whsec_?', 'whpk_AAAA', `${SECRET}\n`, 'é'])(
    'a secret or public key that is none is the fault of the caller: %j',
    async (secret) => {
      const given = {
        'webhook-id': 'evt_1',
        'webhook-timestamp': now(),
        'webhook-signature': 'v1,AAAA v1a,AAAA',
      };
      const expected = secret.trim() === SECRET ? WebhookVerificationError : TypeError;
      expect(() => verifyWebhook('{}', given, secret)).toThrow(expected);
      await expect(verifyWebhookWithPublicKey('{}', given, secret)).rejects.toThrow(TypeError);
    },
  );
});
