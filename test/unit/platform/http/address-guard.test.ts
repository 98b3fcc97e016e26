import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { describe, expect, test } from 'vitest';
import { InvalidCidrError } from '../../../../src/platform/http/networks.ts';
import { makeAddressGuard } from '../../../../src/platform/http/outbound-url.ts';

const guard = makeAddressGuard({ allowCidrs: [] });

/** The first and last address of every range that is refused. */
const REFUSED = [
  ['0.0.0.0', '0.255.255.255'],
  ['10.0.0.0', '10.255.255.255'],
  ['100.64.0.0', '100.127.255.255'],
  ['127.0.0.0', '127.255.255.255'],
  ['169.254.0.0', '169.254.169.254', '169.254.255.255'],
  ['172.16.0.0', '172.31.255.255'],
  ['192.0.0.0', '192.0.0.255'],
  ['192.0.2.0', '192.0.2.255'],
  ['192.88.99.0', '192.88.99.255'],
  ['192.168.0.0', '192.168.255.255'],
  ['198.18.0.0', '198.19.255.255'],
  ['198.51.100.0', '198.51.100.255'],
  ['203.0.113.0', '203.0.113.255'],
  ['224.0.0.0', '239.255.255.255'],
  ['240.0.0.0', '255.255.255.254', '255.255.255.255'],
  ['::', '::1', '::7f00:1', '::8.8.8.8', 'ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['::ffff:0:127.0.0.1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:10.1.2.3'],
  ['64:ff9b::', '64:ff9b::7f00:1', '64:ff9b::8.8.8.8', '64:ff9b::ffff:ffff'],
  ['64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff'],
  ['100::', '100::ffff:ffff:ffff:ffff'],
  ['2001::', '2001:0:4136:e378::1', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2002::', '2002:7f00:1::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['5f00::', '5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['fc00::', 'fd00:ec2::254', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['fe80::', 'fe80::1%eth0', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['ff00::', 'ff02::1', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
].flat();

const PUBLIC = [
  ...['1.0.0.0', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255'],
  ...[
    '128.0.0.0',
    '169.253.255.255',
    '169.255.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.0',
    '192.167.255.255',
  ],
  ...['192.169.0.0', '198.17.255.255', '198.20.0.0', '223.255.255.255'],
  ...['2001:4860:4860::8888', '2606:4700::6810:1', '2a00:1450::1', '2001:200::', '::ffff:8.8.8.8'],
];

describe('an address guard without an allow-list', () => {
  test.each(REFUSED)('refuses %s', (ip) => {
    expect(guard.check(ip)).toEqual({ allowed: false, reason: 'refused_range' });
  });

  test.each(PUBLIC)('lets %s pass', (ip) => {
    expect(guard.check(ip)).toEqual({ allowed: true, reason: 'public' });
  });

  test.each([
    '',
    'localhost',
    '0x7f.1',
    '2130706433',
    '127.1',
    '0177.0.0.1',
    '1.2.3.4.5',
    '[::1]',
    ' 8.8.8.8',
    '8.8.8.8/32',
  ])('takes %j for no address at all', (ip) =>
    expect(guard.check(ip)).toEqual({ allowed: false, reason: 'not_an_address' }),
  );

  test('judges an IPv4 address and its IPv6 form alike', () => {
    fc.assert(
      fc.property(fc.ipV4(), (ip) => {
        expect(guard.check(`::ffff:${ip}`)).toEqual(guard.check(ip));
      }),
    );
  });

  test('answers for any text and any IPv6 address', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.ipV6()), (text) => {
        expect(typeof guard.check(text).allowed).toBe('boolean');
      }),
    );
  });
});

describe('an allow-list', () => {
  const allowing = makeAddressGuard({ allowCidrs: ['10.1.0.0/16', 'fd00:1::/32'] });

  test.each(['10.1.0.0', '10.1.255.255', '::ffff:10.1.2.3', 'fd00:1::5'])('opens %s', (ip) => {
    expect(allowing.check(ip)).toEqual({ allowed: true, reason: 'allow_listed' });
  });

  test.each(['10.0.255.255', '10.2.0.0', '127.0.0.1', 'fd00:2::', '::1'])('still refuses %s', (ip) => {
    expect(allowing.check(ip).allowed).toBe(false);
  });

  test.each(['10.0.0.0', '10.0.0.0/33', 'nonsense', '', '::/129'])('is refused when it holds %j', (cidr) => {
    expect(() => makeAddressGuard({ allowCidrs: [cidr] })).toThrow(InvalidCidrError);
  });
});

test('behind NAT64 the IPv4 address must be allowed as well', () => {
  const guard = makeAddressGuard({ allowCidrs: ['64:ff9b::/96', '10.1.0.0/16'] });
  fc.assert(
    fc.property(fc.ipV4(), (ip) => {
      expect(guard.check(`64:ff9b::${ip}`).allowed).toBe(guard.check(ip).allowed);
    }),
  );
  expect(guard.check('64:ff9b::10.2.0.1').allowed).toBe(false);
  expect(guard.check('64:ff9b::10.1.0.1').allowed).toBe(true);
  expect(makeAddressGuard({ allowCidrs: [] }).check('64:ff9b::8.8.8.8').allowed).toBe(false);
});

/** An IPv4 address in a prefix of RFC 6052 §2.2, of which the bits 64 to 71 are zero. */
function embedded(prefix: string, prefixBits: number, ip: string): string {
  const bytes = ipaddr.IPv6.parse(prefix).toByteArray();
  const at = prefixBits / 8;
  ip.split('.').forEach((octet, n) => {
    const index = at + n;
    bytes[prefixBits < 96 && index >= 8 ? index + 1 : index] = Number(octet);
  });
  return new ipaddr.IPv6(bytes).toString();
}

test.each([32, 40, 48, 56, 64, 96])(
  'behind a NAT64 prefix of our own with %i bits the IPv4 address is judged',
  (bits) => {
    const prefix = '2606:4700:a1b2:c3d4::';
    const network = ipaddr.IPv6.networkAddressFromCIDR(`${prefix}/${bits}`).toString();
    const guard = makeAddressGuard({ allowCidrs: ['10.1.0.0/16'], nat64Prefixes: [`${network}/${bits}`] });
    fc.assert(
      fc.property(fc.ipV4(), (ip) => {
        expect([ip, guard.check(embedded(network, bits, ip)).allowed]).toEqual([ip, guard.check(ip).allowed]);
      }),
    );
    expect(guard.check(embedded(network, bits, '169.254.169.254')).allowed).toBe(false);
    expect(makeAddressGuard({ allowCidrs: [] }).check(embedded(network, bits, '10.2.0.1')).allowed).toBe(
      true,
    );
  },
);

test('a NAT64 prefix of another length is refused', () => {
  expect(() => makeAddressGuard({ allowCidrs: [], nat64Prefixes: ['2606:4700::/44'] })).toThrow(
    InvalidCidrError,
  );
});

test('cloud metadata gets nothing, whatever is allowed', () => {
  const guard = makeAddressGuard({
    allowCidrs: ['0.0.0.0/0', '::/0', '169.254.0.0/16', 'fd00:ec2::254/128'],
  });
  for (const address of [
    ...['169.254.169.254', '169.254.170.2', '168.63.129.16', '100.100.100.200', '192.0.0.192'],
    ...['fd00:ec2::254', 'fd20:ce::254', '::ffff:169.254.169.254', '::ffff:a9fe:a9fe'],
    ...['64:ff9b::a9fe:a9fe', '64:ff9b:1::169.254.169.254'],
  ]) {
    expect([address, guard.check(address).allowed]).toEqual([address, false]);
  }
  for (const address of ['10.1.2.3', '169.254.1.1', 'fd00::1']) {
    expect([address, guard.check(address)]).toEqual([address, { allowed: true, reason: 'allow_listed' }]);
  }
});
