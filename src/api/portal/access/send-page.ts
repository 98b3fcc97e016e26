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
