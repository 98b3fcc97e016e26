import type { FastifyRequest } from 'fastify';
import type { Brand } from '../../../features/accounts/brands.ts';
import type { Visitor } from '../../../features/users/sign-in.ts';
import type { SessionStep } from '../../../features/users/sign-in-policy.ts';
import type { OpenSession } from '../../../features/users/user-sessions.ts';
import type { AlertViewer } from '../../../ops/alerts/alerts.ts';
import type { Actor } from '../../../platform/audit/audit.ts';

/**
 * Who looks at a page. `role` and `tenantId` are those of the tenant in which the session is at present; `tenantId` is
 * null exactly for operators. `csrfToken` is what each form of the session carries.
 */
export type Viewer = Omit<OpenSession, 'id' | 'isUseStale' | 'isNew'> & {
  /** What the session is still to do; on all but a few pages it is `whole`. */
  step: SessionStep;
  isOperatorAddress: boolean;
};

export type ViewerSession = { id: string; viewer: Viewer };

declare module 'fastify' {
  interface FastifyRequest {
    portalSession: ViewerSession | null;
    /** A session that still waits for the second step of its sign-in: for most pages it is none. */
    portalAwaiting: ViewerSession | null;
    /** The portal link of a session that is over. */
    portalLinkOver: OpenSession['link'];
    /** What the page shows in place of our name, logo and colour; null: not looked up. */
    portalBrand: Brand | null;
    portalWaba: PageWaba | null;
    /** What the bell counts; null on open pages. */
    portalNewAlerts: number | null;
    /** Requests for keys that an operator decides on; 0 for others. */
    portalPendingApprovals: number;
    /** Where a page without a WABA in its path is; null on the others, and for operators. */
    portalPlace: TenantPlace | null;
  }
}

/** Who looks at this page. Throws on open pages. */
export function viewerOf(request: FastifyRequest): Viewer {
  return sessionOf(request).viewer;
}

export function viewerIfAny(request: FastifyRequest): Viewer | null {
  return request.portalSession?.viewer ?? null;
}

/** An operator at an address that does not have operators' pages: what is of all tenants is not shown there. */
export function isOperatorElsewhere({ tenantId, isOperatorAddress }: Viewer): boolean {
  return tenantId === null && !isOperatorAddress;
}

/** Whose alerts someone sees: of the tenant, as far as a portal link does not leave WABAs out. */
export function alertViewerOf({ userId, tenantId, link }: Viewer): AlertViewer {
  return { userId, tenantId, wabaIds: link?.wabaIds ?? null };
}

/** The session of this page. Throws on open pages. */
export function sessionOf(request: FastifyRequest): ViewerSession {
  if (request.portalSession === null) throw new Error('the page has no session');
  return request.portalSession;
}

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

export function visitorOf(request: FastifyRequest): Visitor {
  return { ip: request.ip, userAgent: request.headers['user-agent'] ?? null, requestId: request.id };
}

/** The navigation of a page that is about no WABA: the pages of the tenant's only WABA, or the list of its WABAs. */
export type TenantPlace = { waba: { wabaId: string; businessName: string } | null; wabaIds: string[] };

type PageWaba = { wabaId: string; tenantId: string; businessName: string };

/** The WABA in the path, which the viewer may see. Throws on pages without `:wabaId`. */
export function wabaOf(request: FastifyRequest): PageWaba {
  if (request.portalWaba === null) throw new Error('the path of this page names no WABA');
  return request.portalWaba;
}
