import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { eventLine, printableText } from '../../../../dev/sandbox/receiver/event-line.ts';
import { anyText } from '../../../support/any-text.ts';

function lineOf(body: string, more: Record<string, unknown> = {}, useColor = false): string {
  const webhook = {
    n: 1,
    name: '',
    receivedAt: '2026-11-21T12:03:04.123Z',
    webhookId: 'evt_1',
    headers: { 'x-service-attempt': '2' },
    body,
    bodyBase64: '',
    verified: true,
    duplicate: false,
    status: 200,
    answeredAt: null,
    mode: null,
    ...more,
  };
  return eventLine(webhook, useColor);
}

const EVENTS: [string, unknown, string][] = [
  [
    'message',
    { message: { type: 'text', text: { body: 'hello' }, from: '1202' } },
    'text "hello" from (1202)',
  ],
  [
    'message',
    { message: { type: 'image', image: { id: '6', mime_type: 'image/png', caption: 'sun' } } },
    'image image/png "sun"',
  ],
  [
    'message',
    { message: { type: 'interactive', interactive: { type: 'list_reply', list_reply: { title: 'Two' } } } },
    'interactive "Two"',
  ],
  ['status', { status: { status: 'delivered', recipient_id: '1202' } }, 'delivered → 1202'],
  ['status', { status: { status: 'failed', errors: [{ title: 'Undeliverable' }] } }, 'failed Undeliverable'],
  [
    'payment',
    { status: 'captured', currency: 'INR', amount: { value: 21050, offset: 100 }, reference_id: 'ord-1' },
    'captured 210.50 INR ord-1',
  ],
  [
    'order',
    { service: { order_number: 'ORD-7', items_count: 2, currency: 'INR', total_amount: 388.9 } },
    'ORD-7 2 items 388.90 INR',
  ],
  [
    'media.ready',
    { mediaType: 'image', mimeType: 'image/png', mediaPath: '/received_media/a.png' },
    'image image/png /received_media/a.png',
  ],
  ['test', { message: 'This is a test.' }, 'This is a test.'],
];

describe('event line', () => {
  test.each(EVENTS)('of %s tells what is in it', (eventType, data, summary) => {
    const line = lineOf(JSON.stringify({ eventType, eventId: 'wamid.HBgLMTIwMjU1NTAxNDM=', data }));
    expect(line).toMatch(/^12:03:04\.123 {2}/);
    expect(line).toContain(eventType);
    expect(line).toContain('…jU1NTAxNDM=');
    expect(line).toContain(summary);
    expect(line).toMatch(/✓ verified {2}attempt 2$/);
  });

  test('marks bad signatures, duplicates and refusals', () => {
    expect(lineOf('{}', { verified: false, status: 401 })).toContain('✗ signature wrong');
    expect(lineOf('{}', { duplicate: true })).toContain('duplicate');
    expect(lineOf('{}', { status: 503 })).toContain('answered 503');
  });

  test('is coloured only when asked', () => {
    const escapeCode = String.fromCharCode(27);
    expect(lineOf('{}')).not.toContain(escapeCode);
    expect(lineOf('{}', {}, true)).toContain(`${escapeCode}[`);
  });

  test('stays one line without control characters, whatever comes in', () => {
    const eventType = fc.oneof(fc.constantFrom(...EVENTS.map(([type]) => type), '__proto__'), fc.string());
    const hostile = anyText();
    const body = fc.oneof(
      hostile,
      fc.record({ eventType, eventId: hostile, data: fc.anything() }).map((event) => {
        try {
          return JSON.stringify(event) ?? '';
        } catch {
          return '';
        }
      }),
      fc
        .record({ eventType, eventId: hostile, data: fc.dictionary(hostile, fc.jsonValue()) })
        .map((event) => JSON.stringify(event)),
      hostile.map((text) =>
        JSON.stringify({ eventType: 'message', data: { message: { type: 'text', text: { body: text } } } }),
      ),
    );
    fc.assert(
      fc.property(body, hostile, (text, name) => {
        const line = lineOf(text, { name, headers: { 'x-service-attempt': name } });
        expect(line).not.toMatch(/\p{Cc}|\p{Zl}|\p{Zp}/u);
        expect(line.length).toBeLessThan(600);
      }),
      { numRuns: 500 },
    );
  });

  test('keeps terminal and direction commands out', () => {
    expect(printableText('a\u001b[31mb\u202ec\u0000\nd')).toBe('a [31mb c d');
    expect(printableText('x'.repeat(100))).toHaveLength(80);
  });
});
