import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  checkEndpointUrl,
  judgeEndpointUrl,
  makeAddressGuard,
} from '../../../../src/platform/http/outbound-url.ts';
import { anyText } from '../../../support/any-text.ts';

const guard = makeAddressGuard({ allowCidrs: [] });
const rules = { allowHttp: false, guard };
const codeOf = (text: unknown, more: Partial<typeof rules> = {}) => {
  const verdict = judgeEndpointUrl(text, { ...rules, ...more });
  return verdict.ok ? 'ok' : verdict.code;
};

describe('judgeEndpointUrl', () => {
  test.each([
    ['https://example.com', 'https://example.com/'],
    ['https://EXAMPLE.com:443/a?b=c%20d', 'https://example.com/a?b=c%20d'],
    ['https://example.com:8443/hook', 'https://example.com:8443/hook'],
    ['https://grüße.example/é', 'https://xn--gre-6ka8l.example/%C3%A9'],
    ['https://8.8.8.8/', 'https://8.8.8.8/'],
    ['https://[2606:4700::1]/', 'https://[2606:4700::1]/'],
  ])('accepts %s and returns it as it will be called', (text, url) => {
    expect(judgeEndpointUrl(text, rules)).toEqual({ ok: true, url });
  });

  test('accepts http only where it is allowed, and nothing else ever', () => {
    expect(codeOf('http://example.com/')).toBe('https_required');
    expect(codeOf('http://example.com/', { allowHttp: true })).toBe('ok');
    for (const url of [
      'ftp://example.com/',
      'file:///etc/passwd',
      'javascript:alert(1)',
      'ws://example.com/',
    ]) {
      expect(codeOf(url, { allowHttp: true }), url).toBe('https_required');
    }
  });

  test.each([
    '0x7f.1',
    '0x7f000001',
    '2130706433',
    '017700000001',
    '0177.0.0.1',
    '127.1',
    '127.0.0.1',
    '127.0.0.1.',
    '１２７.０.０.１',
    '%31%32%37.0.0.1',
    '0',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:0:0:1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '169.254.169.254',
    '[fd00:ec2::254]',
    '192.168.0.1',
    '10.0.0.1',
    '100.64.0.1',
    '255.255.255.255',
  ])('refuses the address %s in a URL, however it is spelt', (host) => {
    expect(codeOf(`https://${host}/`)).toBe('address_not_allowed');
    expect(codeOf(`https://${host}:8443/x?y`)).toBe('address_not_allowed');
  });

  test('an allow-listed address passes in every spelling', () => {
    const allowing = { guard: makeAddressGuard({ allowCidrs: ['127.0.0.0/8'] }) };
    for (const host of ['127.0.0.1', '0x7f.1', '2130706433', '[::ffff:127.0.0.1]']) {
      expect(codeOf(`https://${host}/`, allowing), host).toBe('ok');
    }
  });

  test.each([
    ['https://user@example.com/', 'credentials_in_url'],
    ['https://user:password@example.com/', 'credentials_in_url'],
    ['https://:password@example.com/', 'credentials_in_url'],
    ['https://example.com/#part', 'fragment_in_url'],
    ['https://example.com/#', 'fragment_in_url'],
    ['https://example.com/ a', 'invalid_url'],
    [' https://example.com/', 'invalid_url'],
    ['https://exa\nmple.com/', 'invalid_url'],
    ['https://example.com/\u0000', 'invalid_url'],
    ['https://', 'invalid_url'],
    ['example.com/hook', 'invalid_url'],
    ['//example.com', 'invalid_url'],
    ['https://exa<mple.com', 'invalid_url'],
    ['https://example.com:0/', 'invalid_url'],
    ['https://example.com:99999/', 'invalid_url'],
    ['https://[fe80::1%25eth0]/', 'invalid_url'],
    ['', 'invalid_url'],
    [null, 'invalid_url'],
    [{ href: 'https://example.com/' }, 'invalid_url'],
    [`https://example.com/${'a'.repeat(2048)}`, 'url_too_long'],
    [`https://example.com/${'é'.repeat(500)}`, 'url_too_long'],
  ])('refuses %j as %s', (text, code) => expect(codeOf(text)).toBe(code));

  test('a URL of 2048 characters is still accepted', () => {
    const head = 'https://example.com/';
    expect(codeOf(head + 'a'.repeat(2048 - head.length))).toBe('ok');
    expect(codeOf(head + 'a'.repeat(2049 - head.length))).toBe('url_too_long');
  });

  test('never throws and accepts only URLs that are judged the same again', () => {
    const part = anyText().map((text) => encodeURIComponent(text));
    const urls = fc
      .tuple(fc.constantFrom('http', 'https'), fc.webAuthority(), part, part, part)
      .map(
        ([scheme, authority, path, query, fragment]) =>
          `${scheme}://${authority}/${path}?${query}#${fragment}`,
      );
    const texts = fc.oneof(urls, fc.string(), fc.anything());
    fc.assert(
      fc.property(texts, (text) => {
        const verdict = judgeEndpointUrl(text, { ...rules, allowHttp: true });
        if (verdict.ok) expect(judgeEndpointUrl(verdict.url, { ...rules, allowHttp: true })).toEqual(verdict);
      }),
    );
  });
});

describe('checkEndpointUrl', () => {
  const url = 'https://receiver.example/';
  const check = (addresses: string[]) => checkEndpointUrl(url, { ...rules, resolve: async () => addresses });

  test('accepts a name whose addresses are all allowed', async () => {
    expect(await check(['8.8.8.8', '2606:4700::1'])).toEqual({ ok: true, url });
  });

  test('refuses a name as soon as one of its addresses is not allowed, and does not tell which', async () => {
    const verdict = await check(['8.8.8.8', '10.20.30.40']);
    expect(verdict).toMatchObject({ ok: false, code: 'address_not_allowed' });
    expect(JSON.stringify(verdict)).not.toContain('10.20.30.40');
  });

  test('accepts a name that does not resolve now, because the sender checks again', async () => {
    const resolve = () => Promise.reject(new Error('no such name'));
    expect(await checkEndpointUrl(url, { ...rules, resolve })).toEqual({ ok: true, url });
  });

  test('a name that does not resolve and one that leads inside are one answer to who only asks', async () => {
    const ask = (resolve: () => Promise<string[]>) =>
      checkEndpointUrl(url, { ...rules, resolve, unresolved: 'refuse' });
    const inside = await ask(async () => ['10.20.30.40']);
    expect(inside).toMatchObject({ ok: false });
    expect(await ask(() => Promise.reject(new Error('no such name')))).toEqual(inside);
    expect(await ask(async () => [])).toEqual(inside);
    expect(await ask(async () => ['8.8.8.8'])).toMatchObject({ ok: true });
  });

  test('new URLs use one of the ports, the present one may keep its port', async () => {
    const ask = (text: string, more = {}) =>
      checkEndpointUrl(text, { ...rules, ports: [443, 8443], resolve: async () => ['8.8.8.8'], ...more });
    const present = 'https://receiver.example:9443/a';
    for (const text of [url, 'https://receiver.example:8443/', 'https://8.8.8.8/'])
      expect(await ask(text)).toMatchObject({ ok: true });
    for (const text of [present, 'https://receiver.example:22/', 'https://8.8.8.8:5432/'])
      expect(await ask(text)).toMatchObject({
        code: 'port_not_allowed',
        message: expect.stringContaining('443, 8443'),
      });
    expect(await ask(present, { presentUrl: present })).toEqual({ ok: true, url: present });
    expect(await ask(`${present}/b`, { presentUrl: present })).toMatchObject({ code: 'port_not_allowed' });
    expect(await ask(present, { ports: [] })).toMatchObject({ ok: true });
  });

  test('asks no resolver about an address or a refused URL', async () => {
    const resolve = () => expect.unreachable();
    expect(await checkEndpointUrl('https://8.8.8.8/', { ...rules, resolve })).toMatchObject({ ok: true });
    expect(await checkEndpointUrl('http://receiver.example/', { ...rules, resolve })).toMatchObject({
      ok: false,
    });
    expect(await checkEndpointUrl(7, { ...rules, resolve })).toMatchObject({ ok: false });
  });
});
