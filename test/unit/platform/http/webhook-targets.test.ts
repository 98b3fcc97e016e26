import { expect, test } from 'vitest';
import {
  checkEndpointUrl,
  InvalidTargetError,
  isTargetAllowed,
  makeAddressGuard,
  parseTarget,
  type WebhookTarget,
} from '../../../../src/platform/http/outbound-url.ts';
import { makeHttpSender } from '../../../../src/platform/sender/http-sender.ts';

const to = (hostname: string, ...addresses: string[]): WebhookTarget => ({
  hostname,
  port: 443,
  addresses: addresses.length === 0 ? null : addresses,
});

test.each<[string[], string[], WebhookTarget, boolean]>([
  [[], [], to('shop.example', '93.184.216.34'), true],
  [[], ['shop.example'], to('shop.example', '93.184.216.34'), false],
  [[], ['shop.example'], to('SHOP.example.', '93.184.216.34'), false],
  [[], ['shop.example:8443'], to('shop.example', '93.184.216.34'), true],
  [[], ['*.example'], to('a.b.example', '93.184.216.34'), false],
  [[], ['*.example'], to('example', '93.184.216.34'), true],
  [[], ['93.184.0.0/16'], to('shop.example', '1.1.1.1', '93.184.216.34'), false],
  [[], ['93.184.0.0/16'], to('shop.example'), true],
  [[], ['93.184.216.34:80'], to('shop.example', '93.184.216.34'), true],
  [['shop.example'], [], to('shop.example', '93.184.216.34'), true],
  [['shop.example'], [], to('other.example', '93.184.216.34'), false],
  [['shop.example:8443'], [], to('shop.example', '93.184.216.34'), false],
  [['shop.example'], ['93.184.216.34'], to('shop.example', '93.184.216.34'), false],
  [['10.1.0.0/16:443'], [], to('inner.example', '10.1.2.3'), true],
  [['10.1.0.0/16:8443'], [], to('inner.example', '10.1.2.3'), false],
  [['10.1.0.0/16'], [], to('inner.example', '10.1.2.3', '10.2.0.1'), false],
  [['10.1.0.0/16'], [], to('inner.example'), true],
  [['shop.example'], [], to('inner.example'), false],
  [['[2001:db8::/32]:443'], [], to('six.example', '2001:db8::7'), true],
  [['2001:db8::7'], [], to('six.example', '2001:db8::8'), false],
  [[], ['10.0.0.0/8'], to('x.example', '::ffff:10.1.2.3'), false],
  [[], ['10.0.0.0/8'], to('x.example', '64:ff9b::10.1.2.3'), false],
  [['10.0.0.0/8'], [], to('x.example', '64:ff9b::10.1.2.3'), true],
])('with allowed %j and denied %j, %j: %s', (allow, deny, target, isAllowed) => {
  expect(isTargetAllowed({ allow, deny }, target)).toBe(isAllowed);
});

test.each(['', ':443', 'a b', 'shop.example:0', 'shop.example:70000', 'https://shop.example', '10.0.0.0/33'])(
  '%j is no entry',
  (text) => {
    expect(() => parseTarget(text)).toThrow(InvalidTargetError);
  },
);

test('what the installation denies no list of a WABA opens, by name, by address, and when a connection is made', async () => {
  const guard = makeAddressGuard({
    allowCidrs: ['10.0.0.0/8'],
    nat64Prefixes: ['2606:4700:a1b2::/96'],
    deny: ['*.internal.example', '8.8.8.0/24', '10.7.0.0/16', 'db.example:5432'],
  });
  const rules = {
    allowHttp: false,
    guard,
    targets: { allow: ['*.example', '8.8.8.8', '10.7.0.1'], deny: [] },
  };
  const isOpen = async (url: string, ...addresses: string[]) =>
    (await checkEndpointUrl(url, { ...rules, resolve: async () => addresses })).ok;
  expect(await isOpen('https://shop.example/', '1.1.1.1')).toBe(true);
  expect(await isOpen('https://db.example/', '1.1.1.1')).toBe(true);
  for (const url of [
    'https://a.internal.example/',
    'https://db.example:5432/',
    'https://8.8.8.8/',
    'https://10.7.0.1/',
  ])
    expect([url, await isOpen(url, '1.1.1.1')]).toEqual([url, false]);
  for (const address of ['8.8.8.8', '10.7.0.1', '2606:4700:a1b2::a07:1'])
    expect([address, await isOpen('https://shop.example/', address)]).toEqual([address, false]);
  const sender = makeHttpSender({
    guard,
    allowHttp: false,
    connectTimeoutMs: 5_000,
    totalTimeoutMs: 5_000,
    resolve: async () => ['8.8.8.8'],
  });
  const request = { url: 'https://shop.example/', headers: {}, body: Buffer.from('{}') };
  expect(await sender.send(request)).toMatchObject({ errorClass: 'dns' });
  await sender.close();
  expect(() => makeAddressGuard({ allowCidrs: [], deny: ['no target!'] })).toThrow(InvalidTargetError);
});
