import type { FastifyContextConfig, FastifyInstance } from 'fastify';

type PageAccess = 'open' | 'signedIn' | 'member' | 'admin' | 'operator';

declare module 'fastify' {
  interface FastifyContextConfig {
    pageAccess?: PageAccess;
    /** Scripts ask for it again and again: that is no use of the session. */
    polled?: boolean;
    /** It is for users who still have to give their second factor, too. */
    beforeSecondFactor?: true;
    /** Left out: a change asks for it, a page does not. */
    freshProof?: FreshProof;
    /** A form that only looks something up: it is sent as a POST because addresses are kept in logs. */
    isSearch?: true;
  }
}

/**
 * Whether a user must have proved to be there a few minutes ago, or does so now. `code`: only users with a second factor,
 * because the form asks for the password itself. `without`: a change that needs none, with the reason.
 */
type FreshProof = true | 'code' | { without: string };

export const PAGES = {
  open: { pageAccess: 'open' },
  signedIn: { pageAccess: 'signedIn' },
  /** All users of the WABA's tenant, for reading; operators too. The path has `:wabaId`. */
  member: { pageAccess: 'member' },
  /** Administrators of the WABA's tenant; operators too. The path has `:wabaId`. */
  admin: { pageAccess: 'admin' },
  operator: { pageAccess: 'operator' },
} as const satisfies Record<string, { pageAccess: PageAccess }>;

/** A route that asks for a fresh proof in another way than its method says. */
export function withFreshProof<Access extends { pageAccess: PageAccess }>(
  access: Access,
  freshProof: true | 'code' = true,
): Access & { freshProof: true | 'code' } {
  return { ...access, freshProof };
}

/** A change with which a thief of a session does no harm: the reason says why. */
export function withoutFreshProof<Access extends { pageAccess: PageAccess }>(
  access: Access,
  reason: string,
): Access & { freshProof: { without: string } } {
  return { ...access, freshProof: { without: reason } };
}

/** A form that looks something up and changes nothing, for all who may see the page that it leads to. */
export function searchOf<Access extends { pageAccess: PageAccess }>(
  access: Access,
): Access & { freshProof: { without: string }; isSearch: true } {
  return { ...withoutFreshProof(access, 'It only leads to a page that needs no proof.'), isSearch: true };
}

const LOOKING = new Set(['GET', 'HEAD']);

/** The proof that a request of this route wants: a form that comes too late is answered with the question who it is. */
export function wantedProof(
  method: string,
  { pageAccess, freshProof }: Pick<FastifyContextConfig, 'pageAccess' | 'freshProof'>,
): true | 'code' | null {
  if (typeof freshProof === 'object') return null;
  if (freshProof !== undefined) return freshProof;
  return LOOKING.has(method) || pageAccess === 'open' ? null : true;
}

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
    if (access === 'member' && !config?.isSearch && [method].flat().some((one) => !LOOKING.has(one))) {
      throw new Error(`page ${method} ${url} lets members change something`);
    }
  });
}
