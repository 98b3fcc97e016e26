const ANY_ORIGIN = 'https://portal.invalid';

/** Where to go after signing in: a path of the portal, whatever `text` tries. */
export function localPath(text: string | undefined): string {
  const url = text?.startsWith('/') ? URL.parse(text, ANY_ORIGIN) : null;
  const isOurs = url?.origin === ANY_ORIGIN && /^\/portal(?:\/|$)/.test(url.pathname);
  return isOurs && url !== null ? `${url.pathname}${url.search}` : '/portal';
}

/** The sign-in page that leads back to where somebody wanted to go. */
export function signInPath(wanted: string): string {
  const next = localPath(wanted);
  return next === '/portal' ? '/portal/sign-in' : `/portal/sign-in?next=${encodeURIComponent(next)}`;
}
