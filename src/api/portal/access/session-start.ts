import type { FastifyReply, FastifyRequest } from 'fastify';
import { deleteSession } from '../../../users/user-session-store.ts';
import type { PortalContext } from '../portal-app.ts';
import { formCookie, sessionCookie } from './session-cookie.ts';

/** Gives a browser the session that was begun for it; the one that it had ends. */
export async function beginInBrowser(
  { database }: Pick<PortalContext, 'database'>,
  request: FastifyRequest,
  reply: FastifyReply,
  token: string,
): Promise<void> {
  const previous = request.portalSession;
  if (previous !== null) await deleteSession(database, previous.viewer.userId, previous.id);
  sessionCookie.set(reply, token);
  formCookie.clear(reply);
}
