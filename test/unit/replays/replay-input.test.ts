import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkSelection } from '../../../src/features/replays/replay-input.ts';
import { lowestUuidAt, msOfUuidV7, publicDeliveryId, uuidV7 } from '../../../src/platform/public-ids.ts';
import { RequestError } from '../../../src/platform/request-input.ts';
import { anyText } from '../../support/any-text.ts';

const NOW = new Date('2026-11-21T12:00:00Z');
const check = (selection: Parameters<typeof checkSelection>[0]) => checkSelection(selection, NOW);

describe('a selection', () => {
  test('reads back the UUIDs of public delivery ids, each once', () => {
    const uuids = [uuidV7(Date.now()), uuidV7(Date.now())];
    const ids = uuids.map(publicDeliveryId);
    expect(check({ deliveryIds: [...ids, ...ids] }).deliveryIds).toEqual(uuids);
  });

  test('ends now when no end is given or one that is still to come', () => {
    expect(check({ states: ['failed'] }).to).toBe(NOW.toISOString());
    expect(check({ to: new Date('2030-01-01T00:00:00Z') }).to).toBe(NOW.toISOString());
    expect(check({ to: new Date('2026-01-01T00:00:00Z') }).to).toBe('2026-01-01T00:00:00.000Z');
  });

  test.each([
    ['nothing', {}],
    ['both forms', { deliveryIds: [publicDeliveryId(uuidV7(1))], states: ['failed'] }],
    ['no deliveries', { deliveryIds: [] }],
    [
      'too many deliveries',
      { deliveryIds: Array.from({ length: 1_001 }, (_, n) => publicDeliveryId(uuidV7(n))) },
    ],
    ['an empty range', { from: NOW, to: NOW }],
    ['a range in the future', { from: new Date('2027-01-01T00:00:00Z') }],
    ['a range that ends before it begins', { from: new Date(2), to: new Date(1) }],
    ['no date', { from: new Date(Number.NaN) }],
    ['no date as end', { to: new Date(Number.NaN) }],
    ['a time before 1970', { from: new Date(-1) }],
    ['an unknown type', { eventTypes: ['mesage'] }],
    ['no type', { eventTypes: [] }],
    ['open deliveries', { states: ['pending'] }],
    ['an endpoint that is no id', { endpointId: '3; drop table' }],
  ])('of %s is refused', (_, selection) => {
    expect(() => check(selection)).toThrow(expect.objectContaining({ code: 'invalid_value' }));
  });

  test('an id of any other form is refused, whatever it is', () => {
    fc.assert(
      fc.property(anyText(), (text) => {
        expect(() => check({ deliveryIds: [text] })).toThrow(RequestError);
        expect(() => check({ deliveryIds: [`dlv_${text}`] })).toThrow(RequestError);
      }),
    );
  });
});

describe('the lowest id of a millisecond', () => {
  test('is above every id before it and not above those of it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 47 }), (atMs) => {
        expect(uuidV7(atMs - 1) < lowestUuidAt(atMs)).toBe(true);
        expect(lowestUuidAt(atMs) <= uuidV7(atMs)).toBe(true);
        expect(msOfUuidV7(uuidV7(atMs))).toBe(atMs);
      }),
    );
  });
});
