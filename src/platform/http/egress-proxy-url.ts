/** The proxy through which requests to addresses of tenants go. Never logged: it may hold a password. */
export type EgressProxy = {
  hostname: string;
  port: number;
  /** The value of Proxy-Authorization; null: the proxy asks for none. */
  authorization: string | null;
};

/**
 * Reads `http://user:password@host:port`; user and password are percent-encoded. Returns null for an empty text.
 * Throws InvalidProxyError, whose message has nothing of the text in it.
 */
export function parseEgressProxy(text: string): EgressProxy | null {
  if (text === '') return null;
  const url = URL.parse(text);
  if (url === null || url.protocol !== 'http:')
    throw new InvalidProxyError('must have the form http://user:password@host:port');
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '')
    throw new InvalidProxyError('must have no path, query or fragment');
  return {
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || 80),
    authorization: authorizationOf(url),
  };
}

/** Its message says which rule is broken and never holds the URL. */
export class InvalidProxyError extends Error {
  override readonly name = 'InvalidProxyError';
}

function authorizationOf({ username, password }: URL): string | null {
  if (username === '' && password === '') return null;
  try {
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    return `Basic ${Buffer.from(credentials, 'utf8').toString('base64')}`;
  } catch {
    throw new InvalidProxyError('must have user and password percent-encoded');
  }
}
