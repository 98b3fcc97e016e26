import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parsePhoneNumber } from '../../../src/features/accounts/commands/waba-commands.ts';
import { parseIsoTime } from '../../../src/platform/cli/admin-action.ts';

describe('--expires', () => {
  test('reads back every moment that is written with its zone', () => {
    const moment = fc.date({
      min: new Date('1970-01-01T00:00:00Z'),
      max: new Date('9999-12-31T23:59:59Z'),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(moment, (date) => {
        expect(parseIsoTime(date.toISOString()).getTime()).toBe(date.getTime());
      }),
    );
    expect(parseIsoTime('2028-02-29T12:00+05:30').toISOString()).toBe('2028-02-29T06:30:00.000Z');
  });

  test.each([
    ...['', 'now', '2027-01-01', '2027-01-01T00:00:00', '2027-02-29T00:00:00Z', '2027-13-01T00:00:00Z'],
    ...['2027-04-31T00:00:00+01:00', '2027-01-01T25:00:00Z', '2027-00-10T00:00:00Z', '1893456000'],
  ])('refuses %j', (text) => {
    expect(() => parseIsoTime(text)).toThrow('ISO 8601');
  });
});

describe('--number', () => {
  test.each([
    ['800', { phoneNumberId: '800' }],
    ['800:1202', { phoneNumberId: '800', displayPhoneNumber: '1202' }],
    ['800::Name', { phoneNumberId: '800', verifiedName: 'Name' }],
    ['800:1202:A: B', { phoneNumberId: '800', displayPhoneNumber: '1202', verifiedName: 'A: B' }],
  ])('reads %s', (text, number) => {
    expect(parsePhoneNumber(text)).toEqual([number]);
    expect(parsePhoneNumber(text, [{ phoneNumberId: '1' }])).toEqual([{ phoneNumberId: '1' }, number]);
  });

  test.each(['', ':1', '+1202', 'abc', '1'.repeat(65), ' 1'])('refuses %j', (text) => {
    expect(() => parsePhoneNumber(text)).toThrow('Write it as');
  });
});
