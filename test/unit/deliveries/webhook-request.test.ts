import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { webhookHeaders } from '../../../src/engine/deliveries/webhook-request.ts';
import {
  isWebhookSecret,
  newWebhookSecret,
  signStandard,
  UnusableSignatureInputError,
} from '../../../src/engine/endpoint/webhook-signature.ts';
import { isReservedHeader } from '../../../src/features/endpoints/endpoint-headers.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
const nowSeconds = () => Math.floor(Date.now() / 1_000);
const bytes = (text: string) => Buffer.from(text, 'utf8');

function verifies(secret: string, body: string, signature: string, timestampSeconds: number): boolean {
  try {
    new Webhook(secret).verify(body, {
      'webhook-id': ID,
      'webhook-timestamp': String(timestampSeconds),
      'webhook-signature': signature,
    });
    return true;
  } catch {
    return false;
  }
}

describe('signStandard', () => {
  test('gives the published vector of Standard Webhooks', () => {
    const body = bytes('{"test": 2432232314}');
    const signature = signStandard({ secrets: [SECRET], id: ID, timestampSeconds: 1614265330, body });
    expect(signature).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
  });

  test('every JSON body verifies with the official library, a changed one does not', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 3 }), fc.nat(), (body, position) => {
        const timestampSeconds = nowSeconds();
        const signature = signStandard({ secrets: [SECRET], id: ID, timestampSeconds, body: bytes(body) });
        expect(verifies(SECRET, body, signature, timestampSeconds)).toBe(true);

        const flipped = bytes(body);
        const index = position % flipped.length;
        flipped[index] = (flipped[index] ?? 0) ^ 1;
        const other = signStandard({ secrets: [SECRET], id: ID, timestampSeconds, body: flipped });
        expect(other).not.toBe(signature);
        expect(verifies(SECRET, `${body} `, signature, timestampSeconds)).toBe(false);
        expect(verifies(SECRET, body, signature, timestampSeconds + 1)).toBe(false);
      }),
    );
  });

  test('bytes that are not text are signed as they are', () => {
    const body = Uint8Array.of(0x00, 0xff, 0xc3, 0x28);
    const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64');
    const expected = createHmac('sha256', key).update(`${ID}.7.`).update(body).digest('base64');
    expect(signStandard({ secrets: [SECRET], id: ID, timestampSeconds: 7, body })).toBe(`v1,${expected}`);
  });

  test('during a rotation the list verifies with either secret and with no third one', () => {
    const [newest, old, foreign] = [newWebhookSecret(), newWebhookSecret(), newWebhookSecret()];
    const timestampSeconds = nowSeconds();
    const body = '{"text":"grüße 👋"}';
    const signature = signStandard({ secrets: [newest, old], id: ID, timestampSeconds, body: bytes(body) });
    expect(signature.split(' ')).toHaveLength(2);
    expect(verifies(newest, body, signature, timestampSeconds)).toBe(true);
    expect(verifies(old, body, signature, timestampSeconds)).toBe(true);
    expect(verifies(foreign, body, signature, timestampSeconds)).toBe(false);
  });

  test.each([
    ['no secret', { secrets: [] }],
    ['a secret without prefix', { secrets: ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'] }],
    ['a secret that is not base64', { secrets: ['whsec_not*base64*not*base64*not*ba'] }],
    ['a short secret', { secrets: ['whsec_c2hvcnQ='] }],
    ['an id with a dot', { id: 'a.b' }],
    ['an empty id', { id: '' }],
    ['a broken time', { timestampSeconds: Number.NaN }],
  ])('refuses %s with an error that does not show the secret', (_name, wrong) => {
    const input = { secrets: [SECRET], id: ID, timestampSeconds: 1, body: bytes('{}'), ...wrong };
    const secretText = input.secrets[0]?.slice('whsec_'.length) ?? SECRET;
    const error = catchError(() => signStandard(input));
    expect(error).toBeInstanceOf(UnusableSignatureInputError);
    expect(String(error)).not.toContain(secretText);
  });
});

test('a new secret is whsec_ and 32 random bytes in base64, and never the same twice', () => {
  const secrets = Array.from({ length: 100 }, newWebhookSecret);
  expect(new Set(secrets).size).toBe(100);
  for (const secret of secrets) {
    expect(isWebhookSecret(secret)).toBe(true);
    expect(Buffer.from(secret.slice('whsec_'.length), 'base64')).toHaveLength(32);
  }
});

test('isWebhookSecret takes whatever it is given', () => {
  fc.assert(
    fc.property(fc.anything(), (value) => {
      expect(isWebhookSecret(value)).toBe(false);
    }),
  );
});

function catchError(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return null;
}

const INPUT = {
  webhookId: 'evt_1',
  timestampSeconds: 1790000000,
  signature: 'v1,abc',
  eventType: 'message',
  eventId: 'wamid.HBgL',
  deliveryId: '42',
  attempt: 3,
  sequence: 7,
  replay: false,
};

describe('webhookHeaders', () => {
  test('are exactly the documented ones', () => {
    expect(webhookHeaders(INPUT)).toEqual({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^Heliograph\/\d+\.\d+\.\d+/),
      'X-Service-Signature': 'v1,abc',
      'webhook-id': 'evt_1',
      'webhook-timestamp': '1790000000',
      'webhook-signature': 'v1,abc',
      'Idempotency-Key': 'evt_1',
      'X-Service-Event-Type': 'message',
      'X-Service-Event-Id': 'wamid.HBgL',
      'X-Service-Delivery-Id': '42',
      'X-Service-Attempt': '3',
      'X-Service-Sequence': '7',
    });
  });

  test('name a replay as one', () => {
    expect(webhookHeaders({ ...INPUT, replay: true })['X-Service-Replay']).toBe('true');
  });

  test('any event id fits a header and decodes to itself', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (eventId) => {
        const encoded = webhookHeaders({ ...INPUT, eventId })['X-Service-Event-Id'] ?? '';
        expect(encoded).toMatch(/^[\x21-\x7e]*$/);
        expect(decodeURIComponent(encoded)).toBe(eventId);
      }),
    );
  });

  test('half a surrogate pair, a line break and U+0000 cannot break the request', () => {
    const encoded = webhookHeaders({ ...INPUT, eventId: 'a\ud800\r\nb\u0000%' })['X-Service-Event-Id'];
    expect(encoded).toBe('a%EF%BF%BD%0D%0Ab%00%25');
  });
});

describe('isReservedHeader', () => {
  test('covers every header that we set, in any case', () => {
    for (const name of Object.keys(webhookHeaders({ ...INPUT, replay: true }))) {
      expect(isReservedHeader(name), name).toBe(true);
      expect(isReservedHeader(name.toUpperCase()), name).toBe(true);
    }
  });

  test.each([
    'Host',
    'content-length',
    'Transfer-Encoding',
    'connection',
    'X-Service-Whatever',
    'webhook-x',
    ' host ',
    ':path',
  ])('refuses %s', (name) => expect(isReservedHeader(name)).toBe(true));

  test.each(['Authorization', 'X-Api-Key', 'X-Tenant', 'hostname', 'x-webhook-source'])(
    'leaves %s to tenants',
    (name) => expect(isReservedHeader(name)).toBe(false),
  );
});
