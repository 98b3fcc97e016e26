import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isReservedHeader, webhookHeaders } from '../../../src/deliveries/webhook-headers.ts';

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

  test('carry another signature profile in X-Service-Signature only, so that official libraries keep verifying', () => {
    const headers = webhookHeaders({ ...INPUT, profileSignature: 'sha256=00' });
    expect(headers['X-Service-Signature']).toBe('sha256=00');
    expect(headers['webhook-signature']).toBe('v1,abc');
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
