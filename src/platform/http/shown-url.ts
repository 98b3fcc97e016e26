/**
 * An endpoint's URL for logs, histories and those who may not change it: origin, path and the names of the query. What
 * stands behind them, and user and password, may be a credential.
 */
export function shownUrl(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null) return '(invalid URL)';
  const parts = parsed.search === '' ? [] : parsed.search.slice(1).split('&').map(masked);
  const query = parts.length === 0 ? '' : `?${parts.join('&')}`;
  return `${parsed.origin}${parsed.pathname}${query}`;
}

/** Without a name, the part is all value. */
function masked(part: string): string {
  const equals = part.indexOf('=');
  return equals < 1 ? '***' : `${part.slice(0, equals)}=***`;
}
