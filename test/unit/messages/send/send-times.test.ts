import { expect, test } from 'vitest';
import { readSendTimes } from '../../../../src/features/messages/send/send-times.ts';

const NOW = Date.parse('2027-03-28T00:00:00Z');
const read = (sendAt: unknown, notAfter?: unknown) => readSendTimes({ sendAt, notAfter }, NOW);
const refusal = (sendAt: unknown, notAfter?: unknown) => {
  try {
    return read(sendAt, notAfter);
  } catch (error) {
    const { code, param } = error as { code: string; param: string };
    return `${code} ${param}`;
  }
};

test('a message without sendAt is sent at once', () => {
  expect(readSendTimes({}, NOW)).toBeNull();
  expect(refusal(undefined, '2027-03-29T00:00:00Z')).toBe('invalid_value notAfter');
});

test('a time has its offset, which decides in the hours that a change of clocks leaves out or repeats', () => {
  const at = (text: string) => read(text)?.sendAt.toISOString();
  // 02:30 in Berlin on that day does not exist: the offset still names one moment.
  expect(at('2027-03-28T02:30:00+01:00')).toBe('2027-03-28T01:30:00.000Z');
  expect(at('2027-03-28T02:30:00+02:00')).toBe('2027-03-28T00:30:00.000Z');
  expect(at('2027-03-28T09:00:00.250Z')).toBe('2027-03-28T09:00:00.250Z');
});

test('30 seconds to 35 days ahead, to the millisecond', () => {
  const ahead = (ms: number) => new Date(NOW + ms).toISOString();
  const days35 = 35 * 86_400_000;
  expect([refusal(ahead(29_999)), refusal(ahead(-1)), refusal(ahead(days35 + 1))]).toEqual(
    Array(3).fill('invalid_value sendAt'),
  );
  expect(read(ahead(30_000))?.sendAt.getTime()).toBe(NOW + 30_000);
  expect(read(ahead(days35))?.sendAt.getTime()).toBe(NOW + days35);
});

test.each([
  ...['2027-03-29T09:00:00', '2027-03-29', '2027-03-29T09:00Z', '2027-03-29T09:00:00 Z'],
  ...['2027-04-31T09:00:00Z', '2027-13-01T09:00:00Z', '2027-03-29T24:00:00Z', '2027-03-29T09:60:00Z'],
  ...['2027-03-29T09:00:00+24:00', '2027-03-29T09:00:00+0100', '2027-03-29T09:00:00[Europe/Berlin]'],
  ...['tomorrow', '', 1_806_300_000, null, {}, '+012027-03-29T09:00:00Z', '2027-03-29T09:00:00\u0000Z'],
])('%j is no time', (sendAt) => {
  expect(refusal(sendAt)).toBe('invalid_value sendAt');
  expect(refusal('2027-03-28T12:00:00Z', sendAt)).toBe('invalid_value notAfter');
});

test('notAfter lies behind sendAt, by up to 7 days', () => {
  const sendAt = '2027-03-29T09:00:00Z';
  expect(read(sendAt)?.notAfter).toBeNull();
  expect(read(sendAt, '2027-04-05T11:00:00+02:00')?.notAfter?.toISOString()).toBe('2027-04-05T09:00:00.000Z');
  for (const wrong of [sendAt, '2027-03-29T08:59:59Z', '2027-04-05T09:00:00.001Z'])
    expect(refusal(sendAt, wrong)).toBe('invalid_value notAfter');
});
