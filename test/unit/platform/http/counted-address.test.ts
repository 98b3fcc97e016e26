import { expect, test } from 'vitest';
import { countByAddress } from '../../../../src/api/rate-limits/address-counts.ts';
import { countedAddress } from '../../../../src/platform/http/counted-address.ts';

/** More than the addresses that are remembered. */
const strangers = Array.from({ length: 5_000 }, (_, n) => `10.9.${n >> 8}.${n & 255}`);

test('an address is counted alike before and after thousands of others', () => {
  const addresses = ['192.0.2.7', '::ffff:192.0.2.7', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2::9', 'unix'];
  const first = addresses.map(countedAddress);
  expect(first).toEqual(['192.0.2.7', '192.0.2.7', '2001:db8:1:2::/64', '2001:db8:1:2::/64', 'unix']);
  expect(strangers.map(countedAddress)).toEqual(strangers);
  expect(addresses.map(countedAddress)).toEqual(first);
});

test('thousands of other addresses do not make anybody forget the wrong keys of one', () => {
  const wrongKeys = countByAddress(1, () => 0);
  const ask = () => wrongKeys.note('192.0.2.7');
  ask();
  for (const ip of strangers) wrongKeys.note(ip);
  expect(wrongKeys.areMany('192.0.2.7')).toBe(false);
  ask();
  expect([wrongKeys.areMany('192.0.2.7'), wrongKeys.areMany('10.9.0.1')]).toEqual([true, false]);
});
