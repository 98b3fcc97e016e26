import type { FastifyReply } from 'fastify';
import { type PageView, renderPage } from '../page.ts';

/** Answers with a page. */
export function sendPage(reply: FastifyReply, view: PageView, status = 200): FastifyReply {
  const hasSandbox = reply.server.hasDecorator('portalSandbox');
  return reply
    .code(status)
    .type('text/html; charset=utf-8')
    .send(renderPage({ hasSandbox, ...view }));
}

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
