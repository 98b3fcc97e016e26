import type { FastifyRequest } from 'fastify';
import type { Actor } from '../../../platform/audit/audit.ts';
import type { OpenSession } from '../../../users/user-session-store.ts';

/**
 * Who looks at a page. `role` and `tenantId` are those of the tenant in which the session is at present; `tenantId` is
 * null exactly for operators. `csrfToken` is what each form of the session carries.
 */
export type Viewer = Omit<OpenSession, 'id' | 'isUseStale'>;

/** The viewer's session, as one of those that the account page lists. */
export type ViewerSession = { id: string; viewer: Viewer };

declare module 'fastify' {
  interface FastifyRequest {
    portalSession: ViewerSession | null;
  }
}

/** Who looks at this page. Throws on pages that nobody has to be signed in for. */
export function viewerOf(request: FastifyRequest): Viewer {
  return sessionOf(request).viewer;
}

/** As `viewerOf`, and null when nobody is signed in. */
export function viewerIfAny(request: FastifyRequest): Viewer | null {
  return request.portalSession?.viewer ?? null;
}

/** The session of this page. Throws on pages that nobody has to be signed in for. */
export function sessionOf(request: FastifyRequest): ViewerSession {
  if (request.portalSession === null) throw new Error('the page has no session');
  return request.portalSession;
}

/** The viewer as the audit log names those who change something. */
export function actorOf(request: FastifyRequest): Actor {
  const { email: name, userId, role, passwordLinkBy } = viewerOf(request);
  return {
    name,
    userId,
    isOperator: role === 'operator',
    passwordLinkBy,
    requestId: request.id,
    ip: request.ip,
  };
}
