import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  mediaReadyData,
  mediaReadyEventId,
  serializeEvent,
  testEventData,
} from '../../../src/engine/deliveries/envelope.ts';
import { laneOf } from '../../../src/engine/deliveries/lanes.ts';

const ENVELOPE = {
  eventType: 'message' as const,
  userId: '7',
  wabaId: '900',
  phoneNumberId: '800',
  eventId: 'wamid.A=',
  occurredAt: new Date(Date.UTC(2026, 8, 21, 1, 2, 3, 4)),
  dataJson: '{"n":1.0}',
};

describe('the envelope', () => {
  test('has the seven members of the spec in its order, minified, with data as given', () => {
    expect(serializeEvent(ENVELOPE)).toBe(
      '{"eventType":"message","userId":7,"wabaId":"900","phoneNumberId":"800","eventId":"wamid.A=",' +
        '"occurredAt":"2026-09-21T01:02:03.004Z","data":{"n":1.0}}',
    );
  });

  test('writes any whole userId exactly and refuses anything else', () => {
    expect(serializeEvent({ ...ENVELOPE, userId: 9007199254740993n })).toContain(
      '"userId":9007199254740993,',
    );
    for (const userId of ['', '1"', '01', '1.5', Number.NaN]) {
      expect(() => serializeEvent({ ...ENVELOPE, userId })).toThrow(TypeError);
    }
  });

  test('keeps hostile ids inside their strings', () => {
    const hostile = '"},"userId":1,"\n\u2028\ud800';
    expect(JSON.parse(serializeEvent({ ...ENVELOPE, eventId: hostile, wabaId: hostile }))).toMatchObject({
      userId: 7,
      eventId: hostile,
    });
  });
});

describe('data of our own events', () => {
  const media = {
    metaMessageId: 'wamid.A',
    serviceMessageId: '12',
    mediaType: 'image',
    mimeType: 'image/jpeg',
    mediaPath: '/received_media/ab/c.jpg',
    mediaUrl: 'https://gateway.example/received_media/ab/c.jpg',
    caption: 'Front "door"',
  };

  test('media.ready has the fields of the spec, and no caption where there is none', () => {
    expect(JSON.parse(mediaReadyData(media))).toEqual({
      metaMessageId: 'wamid.A',
      serviceMessageId: '12',
      mediaType: 'image',
      mimeType: 'image/jpeg',
      mediaPath: '/received_media/ab/c.jpg',
      mediaUrl: 'https://gateway.example/received_media/ab/c.jpg',
      caption: 'Front "door"',
    });
    expect(JSON.parse(mediaReadyData({ ...media, caption: null }))).not.toHaveProperty('caption');
    expect(mediaReadyEventId('wamid.A')).toBe('wamid.A_media');
  });

  test('test events carry a constant notice and the business name', () => {
    const first = JSON.parse(testEventData('Ä "Shop"'));
    expect(Object.keys(first)).toEqual(['message', 'businessName']);
    expect(first.businessName).toBe('Ä "Shop"');
    expect(JSON.parse(testEventData('Other')).message).toBe(first.message);
  });
});

describe('lanes', () => {
  test.each([
    'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQQA=',
    'ord-1001',
    'payment:::captured',
    'मसाला 01',
    'x'.repeat(200),
  ])('keep the readable key %.30s', (key) => {
    expect(laneOf(key)).toBe(key);
  });

  test.each(['', 'x'.repeat(201), 'ä'.repeat(101), 'a\nb', 'a\0', '\ud800', 'a\u2028', 'sha256:00'])(
    'hash what is too long, unprintable or looks like a hash: %j',
    (key) => {
      expect(laneOf(key)).toMatch(/^sha256:[0-9a-f]{64}$/);
    },
  );

  test('differ for different keys, and fit the index', () => {
    const key = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 300 }),
      fc.string({ minLength: 190, maxLength: 210 }),
    );
    fc.assert(
      fc.property(key, key, (left, right) => {
        expect(laneOf(left) === laneOf(right)).toBe(left === right);
        expect(Buffer.byteLength(laneOf(left))).toBeLessThanOrEqual(200);
        if (left !== '')
          expect(laneOf(laneOf(left)).startsWith('sha256:')).toBe(laneOf(left).startsWith('sha256:'));
      }),
    );
  });
});
