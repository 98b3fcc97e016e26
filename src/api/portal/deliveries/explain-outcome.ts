import type { LoggedAttempt } from '../../../deliveries/log/delivery-detail.ts';

const ERRORS: Readonly<Record<string, string>> = {
  dns: 'The name of the receiver could not be resolved. Check the host name in the URL and its DNS records.',
  refused:
    'Nothing accepts connections at this address and port. Is the server running, and does its firewall let us in?',
  reset: 'The receiver, or something before it, cut the connection. Often a proxy or a server that restarts.',
  tls: 'No secure connection came about. The certificate may be expired, self-signed, incomplete or for another name.',
  timeout: 'No complete answer came in time. Answer at once and do the work afterwards.',
  blocked_address: 'The name leads to a private or special address, to which webhooks are never sent.',
  too_large_header: 'The headers of the answer are larger than 16 KiB.',
  invalid_url: 'The stored URL cannot be used any more. Edit the endpoint.',
  closed: 'The receiver closed the connection before its answer was complete.',
  protocol: 'What came back is no valid HTTP/1.1.',
  unreachable: 'There is no route to the address of the receiver.',
  aborted: 'The service was stopping; the attempt is repeated.',
  other: 'The request failed for a reason without a class of its own.',
};

const CODES: Readonly<Record<number, string>> = {
  400: 'The receiver says that the request is wrong. Often a body parser or a signature check that does not take the raw body.',
  401: 'The receiver wants credentials. Add a header of your own to the endpoint, or let the path through and check the signature.',
  403: 'The receiver refuses the request. Often a firewall, or a signature check with another secret.',
  404: 'There is nothing at this path. Check the URL of the endpoint.',
  405: 'The path does not take POST.',
  408: 'The receiver waited too long for the request.',
  410: 'The receiver says that nobody listens there any more, which switches the endpoint off.',
  413: 'The receiver does not take a body of this size.',
  415: 'The receiver does not take application/json.',
  429: 'The receiver gets too much at once. Retry-After is honoured; a rate limit on the endpoint avoids it.',
  500: 'Your server failed while it handled the event. Its own log says why.',
  502: 'A proxy before your server got no valid answer from it.',
  503: 'Your server, or the proxy before it, is not available at the moment.',
  504: 'A proxy before your server got no answer in time.',
};

const CLASSES: Readonly<Record<number, string>> = {
  3: 'The receiver redirects. Redirects are not followed: give the endpoint the final URL.',
  4: 'The receiver refuses the request.',
  5: 'The receiver failed.',
};

/** What an attempt came to, in a sentence or two, with what to do about it. */
export function explainOutcome({
  statusCode,
  errorClass,
  errorMessage,
}: Pick<LoggedAttempt, 'statusCode' | 'errorClass' | 'errorMessage'>): string {
  if (statusCode === null) {
    const explained = ERRORS[errorClass ?? 'other'] ?? ERRORS.other ?? '';
    const said = errorMessage ?? '';
    // Some classes say more in the message, such as which fault of a certificate it is.
    return errorClass === 'tls' && said !== '' ? `${said} ${explained}` : explained;
  }
  if (statusCode >= 200 && statusCode <= 299) return `The receiver answered ${statusCode}: delivered.`;
  const explained = CODES[statusCode] ?? CLASSES[Math.floor(statusCode / 100)] ?? 'This counts as a failure.';
  return `The receiver answered ${statusCode}. ${explained}`;
}
