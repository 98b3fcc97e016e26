import { RequestError, shown } from '../../platform/request-input.ts';

/** Back to the operator's product and nowhere else: an address at one of its origins. Throws RequestError `url_not_allowed`. */
export function checkProductUrl(param: string, text: string, productOrigins: readonly string[]): string {
  const url = URL.parse(text);
  const isListed = url !== null && productOrigins.includes(url.origin);
  if (isListed && url.username === '' && url.password === '') return url.href;
  throw notListed(param, text);
}

export function notListed(param: string, text: string): RequestError {
  const origins = 'an origin that HELIOGRAPH_PORTAL_PRODUCT_ORIGINS lists';
  return new RequestError(
    'url_not_allowed',
    `The ${param} must be at ${origins}, not ${shown(text)}.`,
    param,
  );
}
