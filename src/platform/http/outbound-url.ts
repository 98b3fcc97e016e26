import { isIP } from 'node:net';
import type { AddressGuard } from './address-guard.ts';
import type { ResolveHost } from './resolve-host.ts';

const MAX_URL_LENGTH = 2048;

type EndpointUrlRefusal = {
  ok: false;
  code:
    | 'invalid_url'
    | 'url_too_long'
    | 'https_required'
    | 'credentials_in_url'
    | 'fragment_in_url'
    | 'address_not_allowed';
  /** Safe to show to the tenant: it never tells what a name resolved to. */
  message: string;
};
export type EndpointUrlVerdict = { ok: true; url: string } | EndpointUrlRefusal;

export type EndpointUrlRules = { allowHttp: boolean; guard: AddressGuard };

/**
 * Judges a webhook URL by its text alone; both saving an endpoint and sending to it go through here, so that they
 * cannot disagree. Returns the URL as the WHATWG parser writes it, in which odd spellings of an address (0x7f.1,
 * 2130706433) have become plain ones.
 */
export function judgeEndpointUrl(text: unknown, { allowHttp, guard }: EndpointUrlRules): EndpointUrlVerdict {
  if (typeof text !== 'string') return refuse('invalid_url', 'The URL must be a string.');
  if (text.length > MAX_URL_LENGTH)
    return refuse('url_too_long', `The URL is longer than ${MAX_URL_LENGTH} characters.`);
  // The parser would silently drop these, and the saved text would not be the one that is called.
  if (/[\s\p{Cc}]/u.test(text))
    return refuse('invalid_url', 'The URL contains a space or control character.');
  const url = URL.parse(text);
  if (url === null || url.port === '0') return refuse('invalid_url', 'The URL is not valid.');
  if (url.href.length > MAX_URL_LENGTH)
    return refuse('url_too_long', `The URL is longer than ${MAX_URL_LENGTH} characters.`);
  if (url.protocol !== 'https:' && !(allowHttp && url.protocol === 'http:')) {
    return refuse(
      'https_required',
      allowHttp ? 'The URL must begin with https:// or http://.' : 'The URL must begin with https://.',
    );
  }
  if (url.username !== '' || url.password !== '') {
    return refuse('credentials_in_url', 'The URL must not contain a user name or password.');
  }
  if (text.includes('#')) return refuse('fragment_in_url', 'The URL must not contain a fragment (#).');
  const address = addressLiteral(url.hostname);
  if (address !== null && !guard.check(address).allowed) return ADDRESS_REFUSAL;
  return { ok: true, url: url.href };
}

/**
 * As `judgeEndpointUrl`, and resolves the name as far as that works: every address must be allowed, while a name that
 * does not resolve now is accepted, because it may tomorrow and the sender checks again at connect. Never rejects.
 */
export async function checkEndpointUrl(
  text: unknown,
  { resolve, ...rules }: EndpointUrlRules & { resolve?: ResolveHost },
): Promise<EndpointUrlVerdict> {
  const verdict = judgeEndpointUrl(text, rules);
  if (!verdict.ok || resolve === undefined) return verdict;
  const { hostname } = new URL(verdict.url);
  if (addressLiteral(hostname) !== null) return verdict;
  try {
    const addresses = await resolve(hostname);
    return addresses.every((address) => rules.guard.check(address).allowed) ? verdict : ADDRESS_REFUSAL;
  } catch {
    return verdict;
  }
}

/** The IP address that a URL's hostname is, without the brackets of IPv6; null when it is a name. */
function addressLiteral(hostname: string): string | null {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return isIP(bare) === 0 ? null : bare;
}

const ADDRESS_REFUSAL = refuse(
  'address_not_allowed',
  'The URL leads to an address that webhooks are not sent to.',
);

function refuse(code: EndpointUrlRefusal['code'], message: string): EndpointUrlRefusal {
  return { ok: false, code, message };
}
