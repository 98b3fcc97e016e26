import type { FastifyInstance } from 'fastify';

/** The audience of a page. */
type PageAccess = 'open' | 'signedIn' | 'member' | 'admin' | 'operator';

declare module 'fastify' {
  interface FastifyContextConfig {
    pageAccess?: PageAccess;
    /** Scripts ask for it again and again: that is no use of the session. */
    polled?: boolean;
    /** It is for users who still have to give their second factor, too. */
    beforeSecondFactor?: true;
    /**
     * Its user must have proved to be there a few minutes ago, or does so now. `code`: only users with a second factor,
     * because the form asks for the password itself.
     */
    freshProof?: true | 'code';
  }
}

/** What routes of the portal declare in their `config`. */
export const PAGES = {
  /** All visitors, signed in or not. */
  open: { pageAccess: 'open' },
  /** All signed-in users. */
  signedIn: { pageAccess: 'signedIn' },
  /** All users of the WABA's tenant, for reading; operators too. The path has `:wabaId`. */
  member: { pageAccess: 'member' },
  /** Administrators of the WABA's tenant; operators too. The path has `:wabaId`. */
  admin: { pageAccess: 'admin' },
  operator: { pageAccess: 'operator' },
} as const satisfies Record<string, { pageAccess: PageAccess }>;

/** For what a thief of a session must not do. A form that comes too late is answered with the question who it is. */
export function withFreshProof<Access extends { pageAccess: PageAccess }>(
  access: Access,
  freshProof: true | 'code' = true,
): Access & { freshProof: true | 'code' } {
  return { ...access, freshProof };
}

const LOOKING = new Set(['GET', 'HEAD']);

/** A route of this scope without an audience is a mistake that must not wait for a request. */
export function requireDeclaredAccess(scope: FastifyInstance): void {
  scope.addHook('onRoute', ({ method, url, config }) => {
    const access = config?.pageAccess;
    const hasWaba = /\/:wabaId(?:\/|$)/.test(url);
    const ofTenant = access === 'member' || access === 'admin';
    if (access === undefined) throw new Error(`page ${method} ${url} declares no access`);
    if (ofTenant && !hasWaba) throw new Error(`page ${method} ${url} has no :wabaId to check`);
    if (hasWaba && !ofTenant && access !== 'operator') {
      throw new Error(`page ${method} ${url} names a WABA and does not check it`);
    }
    if (access === 'open' && config?.freshProof) {
      throw new Error(`page ${method} ${url} is for everybody and asks who it is`);
    }
    if (access === 'member' && [method].flat().some((one) => !LOOKING.has(one))) {
      throw new Error(`page ${method} ${url} lets members change something`);
    }
  });
}
