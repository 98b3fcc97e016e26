import type { FastifyReply, FastifyRequest } from 'fastify';
import { setupRowOf } from '../../platform/public-ids.ts';

/** One cookie for each link: two links that are open in one browser do not disturb each other. */
const PREFIX = '__Secure-heliograph-setup-';

/** What the browser that began with a link has, and no other. */
export const nonceCookie = {
  of:
    (request: FastifyRequest) =>
    (rowId: string): string | undefined =>
      request.cookies[`${PREFIX}${rowId}`],
  set(reply: FastifyReply, { id, nonce, expiresAt }: { id: string; nonce: string; expiresAt: Date }): void {
    reply.setCookie(`${PREFIX}${setupRowOf(id)}`, nonce, {
      path: '/setup',
      secure: true,
      httpOnly: true,
      // The way back from Meta is one from another site.
      sameSite: 'lax',
      expires: expiresAt,
    });
  },
};
