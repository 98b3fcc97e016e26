import type { LoggedAttempt } from '../../../deliveries/log/delivery-detail.ts';

const ERRORS: Readonly<Record<string, string>> = {
  dns: 'The host name could not be resolved. Check the URL of the endpoint and its DNS records.',
  refused:
    'Nothing accepts connections at this address and port. Is the server running, and does its firewall allow the connection?',
  reset: 'The server or a proxy in front of it reset the connection. It may be restarting.',
  tls: 'The certificate may be expired, self-signed, incomplete or for another name.',
  timeout: 'No complete response came in time. Respond at once and do the work afterwards.',
  blocked_address:
    'The host name resolves to a private or special address, to which webhooks are never sent.',
  too_large_header: 'The response headers are larger than 16 KiB.',
  invalid_url: 'The stored URL is no longer valid. Edit the endpoint.',
  closed: 'The server closed the connection before its response was complete.',
  protocol: 'The response is not valid HTTP/1.1.',
  unreachable: 'There is no route to the address of the server.',
  aborted: 'Heliograph was stopping; the attempt is repeated.',
  other: 'The request failed for another reason.',
};

const CODES: Readonly<Record<number, string>> = {
  400: 'The server rejects the request. Often a body parser or a signature check does not use the raw body.',
  401: 'The server requires credentials or rejects the signature. Add a header to the endpoint, or check the signing secret.',
  403: 'The server refuses the request. Often a firewall, or a signature check with another secret.',
  404: 'The path does not exist. Check the URL of the endpoint.',
  405: 'The path does not accept POST.',
  408: 'The server waited too long for the request.',
  410: 'The server reports that the endpoint is gone, so the endpoint is disabled.',
  413: 'The server does not accept a body of this size.',
  415: 'The server does not accept application/json.',
  429: 'The server gets too many requests. Retry-After is honoured; a rate limit on the endpoint avoids this.',
  500: 'Your server failed while it processed the event. See its log.',
  502: 'A proxy in front of your server got no valid response from it.',
  503: 'Your server, or the proxy in front of it, is not available at the moment.',
  504: 'A proxy in front of your server got no response in time.',
};

const CLASSES: Readonly<Record<number, string>> = {
  3: 'The server redirects. Redirects are not followed: enter the final URL.',
  4: 'The server refuses the request.',
  5: 'The server failed.',
};

/** The outcome of an attempt in a sentence or two, with what to do about it. */
export function explainOutcome({
  statusCode,
  errorClass,
  errorMessage,
}: Pick<LoggedAttempt, 'statusCode' | 'errorClass' | 'errorMessage'>): string {
  if (statusCode === null) {
    const explained = ERRORS[errorClass ?? 'other'] ?? ERRORS.other ?? '';
    // Its message names the fault of the certificate.
    return errorClass === 'tls' ? `${errorMessage ?? 'The TLS handshake failed.'} ${explained}` : explained;
  }
  if (statusCode >= 200 && statusCode <= 299) return `The server returned ${statusCode}: delivered.`;
  const explained = CODES[statusCode] ?? CLASSES[Math.floor(statusCode / 100)] ?? 'This counts as a failure.';
  return `The server returned ${statusCode}. ${explained}`;
}
