import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { otherSpelling, phoneForUpstream, readPhoneNumber } from '../../../src/platform/phone-number.ts';

const DIGITS = '33612345678';

describe('a phone number is read', () => {
  test.each([
    '33612345678',
    '+33612345678',
    '0033612345678',
    '+0033612345678',
    '00 33 6 12 34 56 78',
    '0000033612345678',
    '+33 (6) 12-34-56-78',
    '(+33) 612345678',
    '33.6.12.34.56.78',
    '33/612345678',
    'tel:+33-6-12345678',
    'TEL:0033612345678',
    'whatsapp:+33612345678',
    '\u202a+33612345678\u202c',
    '\u2068+33\u00a0612345678\u2069',
    '3361\u20112345678',
    '3361\u22122345678',
    '33612345678\u200b',
    '\ufeff33612345678',
    '336\u00ad12345678',
    '\uff0b33612345678',
    '\uff0b\uff13\uff13\uff16\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18',
    '\u0663\u0663\u0666\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668',
    '\u06f3\u06f3\u06f6\u06f1\u06f2\u06f3\u06f4\u06f5\u06f6\u06f7\u06f8',
    '\u0969\u0969\u096c\u0967\u0968\u0969\u096a\u096b\u096c\u096d\u096e',
    '33\u2009612\u202f345\u3000678',
    '\t33612345678\r\n',
  ])('%j', (text) => {
    expect(readPhoneNumber(text)).toBe(DIGITS);
  });

  test.each([
    '',
    '+',
    '()()',
    'US.13491208655302741918',
    '3.3612345678e10',
    '33612345678.0',
    '33612345678.00',
    '33,612,345,678',
    '+44 (0)20 7946 0018',
    '+33612345678;ext=5',
    '33612345678@s.whatsapp.net',
    'https://wa.me/33612345678',
    '٪33612345678',
    '33612345678 or 33612345679',
    '0x7d3d5a4ce',
    '33612345678\0',
  ])('%j is none', (text) => {
    expect(readPhoneNumber(text)).toBeNull();
  });

  test('alike when what was read is read again', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'0123456789 ()+-./'), maxLength: 24 }), (text) => {
        const digits = readPhoneNumber(text);
        if (digits !== null) expect(readPhoneNumber(digits)).toBe(digits);
      }),
    );
  });

  test('in time that grows with its length only', () => {
    const long = `${' '.repeat(100_000)}${'('.repeat(100_000)}x`;
    const startMs = process.cpuUsage().user / 1_000;
    expect(readPhoneNumber(long)).toBeNull();
    expect(process.cpuUsage().user / 1_000 - startMs).toBeLessThan(2_000);
  });
});

test('upstream gets a number as it was given, or as digits where it might read others', () => {
  for (const given of ['+12025550143', '12025550143', '+1 (202) 555-0143', '1-202-555.0143'])
    expect(phoneForUpstream(given)).toBe(given);
  for (const given of [
    '0012025550143',
    '1202\u20115550143',
    'tel:+1-202-555-0143',
    '1/202/5550143',
    ' +12025550143',
  ])
    expect([given, phoneForUpstream(given)]).toEqual([given, '+12025550143']);
  expect(phoneForUpstream('US.1349')).toBe('US.1349');
});

test.for([
  ['5511987654321', '551187654321'],
  ['551167654321', '5511967654321'],
  ['5215512345678', '525512345678'],
  ['525512345678', '5215512345678'],
  ['5491112345678', '541112345678'],
  ['541112345678', '5491112345678'],
  // Landlines of Brazil, and mobile numbers that never were without the 9.
  ['551123456789', null],
  ['5511923456789', null],
  ['12025550143', null],
  ['521551234567', '5211551234567'],
  ['US.13491208655302741918', null],
])('the other spelling of %s', ([digits, other]) => {
  expect(otherSpelling(digits ?? '')).toBe(other);
});
