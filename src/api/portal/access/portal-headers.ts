import type { FastifyReply } from 'fastify';

/** Nothing inline and nothing from elsewhere. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "media-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'cache-control': 'no-store',
  // With no-referrer, browsers send "Origin: null" with forms, and nobody could tell ours from those of others.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'x-frame-options': 'DENY',
};

/** Sets what every answer of the portal carries, over the headers of all answers. */
export function setPortalHeaders(reply: FastifyReply): void {
  reply.headers(HEADERS);
}
