import { describe, expect, test } from 'vitest';
import { checkedMediaUrl, MediaHostRefused } from '../../../../src/platform/graph/graph-connection.ts';

const PRODUCTION = {
  mediaHosts: ['fbsbx.com', 'facebook.com', 'fbcdn.net', 'upstream.example'],
  allowHttp: false,
  graphUrl: 'https://api.upstream.example/v26.0',
};
const DEVELOPMENT = {
  mediaHosts: ['127.0.0.1'],
  allowHttp: true,
  graphUrl: 'http://127.0.0.1:4010/v26.0',
};

describe('where the access token may be sent', () => {
  test.each([
    'https://lookaside.fbsbx.com/whatsapp_business/attachments/?mid=1&ext=2&hash=3',
    'https://fbsbx.com/x',
    'https://FBSBX.com./x',
    'https://scontent.xx.fbcdn.net/v/x',
  ])('%s is allowed', (address) => {
    expect(checkedMediaUrl(address, PRODUCTION).protocol).toBe('https:');
  });

  test.each([
    ['the Graph API, whatever the setting says', 'https://graph.facebook.com/v26.0/me/businesses'],
    ['a Graph API of another kind', 'https://GRAPH-video.facebook.com./v26.0/me'],
    ['the host of calls', 'https://api.upstream.example/files/1'],
    ['another host', 'https://example.com/x'],
    ['a host that only ends in the same letters', 'https://evilfbsbx.com/x'],
    ['the allowed name as a subdomain of another', 'https://fbsbx.com.evil.example/x'],
    ['the allowed name as user name', 'https://fbsbx.com@evil.example/x'],
    ['a user name at an allowed host', 'https://user:secret@lookaside.fbsbx.com/x'],
    ['the allowed name in the path', 'https://evil.example/fbsbx.com'],
    ['a backslash trick', 'https://evil.example\\@fbsbx.com/x'],
    ['plain http', 'http://lookaside.fbsbx.com/x'],
    ['another scheme', 'ftp://lookaside.fbsbx.com/x'],
    ['an odd port', 'https://lookaside.fbsbx.com:8443/x'],
    ['an address inside our network', 'https://169.254.169.254/latest/meta-data'],
    ['no URL at all', 'lookaside.fbsbx.com/x'],
    ['nothing', ''],
  ])('%s is refused', (_name, address) => {
    expect(() => checkedMediaUrl(address, PRODUCTION)).toThrow(MediaHostRefused);
  });

  test('development allows http and any port, still to listed hosts only', () => {
    expect(checkedMediaUrl('http://127.0.0.1:4010/media/1', DEVELOPMENT).port).toBe('4010');
    expect(() => checkedMediaUrl('http://10.0.0.1/x', DEVELOPMENT)).toThrow(MediaHostRefused);
    for (const path of ['/v26.0/me', '/v25.0/1', '/me/../v26.0/1'])
      expect(() => checkedMediaUrl(`http://127.0.0.1:4010${path}`, DEVELOPMENT)).toThrow(MediaHostRefused);
  });

  test('an entry that is a part of an IP address allows nothing', () => {
    expect(() => checkedMediaUrl('https://10.0.0.1/x', { ...PRODUCTION, mediaHosts: ['0.0.1', ''] })).toThrow(
      MediaHostRefused,
    );
  });

  test('a refusal names the host but neither path nor query, which hold signatures', () => {
    try {
      checkedMediaUrl('https://evil.example/secret-path?hash=secret', PRODUCTION);
      expect.unreachable();
    } catch (error) {
      expect(String(error)).toContain('evil.example');
      expect(String(error)).not.toContain('secret');
    }
  });
});
