/**
 * Whether two URLs, as the WHATWG parser writes them, lead to the same receiver: host, port and path decide. Query,
 * scheme (a redirect mostly), a trailing slash or dot and the case of percent-encoding do not.
 */
export function isSameTarget(first: string, second: string): boolean {
  const target = targetOf(first);
  return target !== null && target === targetOf(second);
}

function targetOf(text: string): string | null {
  const url = URL.parse(text);
  if (url === null) return null;
  const path = decoded(url.pathname).replace(/(?<!\/)\/+$/, '');
  return `${url.hostname.replace(/\.$/, '')}:${url.port} ${path}`;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
