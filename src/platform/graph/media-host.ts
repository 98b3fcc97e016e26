/** An address that the access token is not sent to. `host` is safe to show; the rest of the address is not. */
export class MediaHostRefused extends Error {
  readonly host: string;

  constructor(host: string, reason: string) {
    super(`The access token is not sent to ${host === '' ? 'this address' : host}: ${reason}.`);
    this.name = 'MediaHostRefused';
    this.host = host;
  }
}

/** Which addresses media may be fetched from with the access token. */
export type MediaHostRules = {
  /** Host names, each with its subdomains, and IP addresses. */
  mediaHosts: readonly string[];
  /** In development mode only: plain http and any port. */
  allowHttp: boolean;
};

const IP_LITERAL = /^[\d.]+$|^\[/;

/** The URL when the access token may be sent there. Throws MediaHostRefused. */
export function checkedMediaUrl(address: string, { mediaHosts, allowHttp }: MediaHostRules): URL {
  const url = URL.parse(address);
  if (url === null) throw new MediaHostRefused('', 'it is not a URL');
  const isPlainHttp = url.protocol === 'http:' && allowHttp;
  if (url.protocol !== 'https:' && !isPlainHttp) throw new MediaHostRefused(url.hostname, 'it is not https');
  if (url.username !== '' || url.password !== '')
    throw new MediaHostRefused(url.hostname, 'it holds a user name');
  if (url.port !== '' && !allowHttp) throw new MediaHostRefused(url.hostname, 'it names a port');
  if (!mediaHosts.some((allowed) => isHostWithin(url.hostname, allowed))) {
    throw new MediaHostRefused(
      url.hostname,
      'the setting HELIOGRAPH_UPSTREAM_MEDIA_HOSTS does not name its host',
    );
  }
  return url;
}

function isHostWithin(host: string, allowed: string): boolean {
  const name = allowed
    .trim()
    .toLowerCase()
    .replace(/^\.+|\.+$/g, '');
  const own = host.replace(/\.$/, '');
  if (name === '') return false;
  return own === name || (!IP_LITERAL.test(own) && own.endsWith(`.${name}`));
}
