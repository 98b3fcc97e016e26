import type { FastifyInstance } from 'fastify';
import type { Capability, PortalLinkGrant } from '../../../features/users/portal-link-store.ts';

/** What a page wants of a portal link: a capability, nothing (`all`), or it is never for links (`none`). */
type Need = Capability | 'all' | 'none';

const OF_WABA = '/portal/w/:wabaId';

/**
 * What each page and each form wants of the session of a portal link: to look, and to send. The first row that fits
 * counts. `:x` is one part of a path, `*` the rest, if any. What is not for links: users, erasures, policies, accounts, other tenants.
 */
const NEEDS: readonly (readonly [path: string, look: Need, send?: Need])[] = [
  ['/portal', 'all'],
  ['/portal/confirm', 'all', 'all'],
  ['/portal/confirmed', 'none'],
  ['/portal/sign-out', 'none', 'all'],
  ['/portal/sign-in/code', 'none'],
  ['/portal/account*', 'none'],
  ['/portal/tenant', 'none'],
  ['/portal/alerts', 'alerts'],
  ['/portal/alerts/read', 'none', 'alerts'],
  ['/portal/alerts/mail', 'none'],
  ['/portal/runbooks', 'alerts'],
  ['/portal/sandbox*', 'none'],
  [OF_WABA, 'view'],
  [`${OF_WABA}/endpoints`, 'view', 'manage_endpoints'],
  [`${OF_WABA}/endpoints/new`, 'manage_endpoints'],
  [`${OF_WABA}/endpoints/check-url`, 'manage_endpoints'],
  [`${OF_WABA}/endpoints/alerts`, 'alerts', 'manage_endpoints'],
  [`${OF_WABA}/endpoints/alerts/rotate-secret`, 'none', 'reveal_secrets'],
  [`${OF_WABA}/endpoints/alerts/remove`, 'none', 'manage_endpoints'],
  [`${OF_WABA}/endpoints/:id`, 'view'],
  [`${OF_WABA}/endpoints/:id/deliveries`, 'view'],
  [`${OF_WABA}/endpoints/:id/settings`, 'view'],
  [`${OF_WABA}/endpoints/:id/security`, 'view'],
  [`${OF_WABA}/endpoints/:id/filter`, 'view_events', 'view_events'],
  [`${OF_WABA}/endpoints/:id/rotate-secret`, 'none', 'reveal_secrets'],
  [`${OF_WABA}/endpoints/:id/retry`, 'none', 'retry'],
  [`${OF_WABA}/endpoints/:id/test`, 'none', 'retry'],
  [`${OF_WABA}/endpoints/:id/tests*`, 'retry'],
  [`${OF_WABA}/endpoints/:id*`, 'manage_endpoints', 'manage_endpoints'],
  [`${OF_WABA}/deliveries`, 'view'],
  [`${OF_WABA}/deliveries/search`, 'none', 'view'],
  [`${OF_WABA}/deliveries/rows`, 'view'],
  [`${OF_WABA}/deliveries/selected/retry`, 'none', 'retry'],
  [`${OF_WABA}/deliveries/:id`, 'view'],
  [`${OF_WABA}/deliveries/:id/body`, 'view_events'],
  [`${OF_WABA}/deliveries/:id/drop`, 'manage_endpoints', 'manage_endpoints'],
  [`${OF_WABA}/deliveries/:id*`, 'none', 'retry'],
  [`${OF_WABA}/replays`, 'view', 'retry'],
  [`${OF_WABA}/replays/new`, 'retry', 'retry'],
  [`${OF_WABA}/replays*`, 'view', 'retry'],
  [`${OF_WABA}/event-types*`, 'view'],
  [`${OF_WABA}/templates`, 'view'],
  [`${OF_WABA}/conversations*`, 'view_conversations', 'view_conversations'],
  [`${OF_WABA}/scheduled`, 'view_conversations'],
  [`${OF_WABA}/scheduled*`, 'none'],
  [`${OF_WABA}/broadcasts/new*`, 'none'],
  [`${OF_WABA}/broadcasts/:id/recipients`, 'none'],
  [`${OF_WABA}/broadcasts/:id/start`, 'none'],
  [`${OF_WABA}/broadcasts*`, 'view_conversations'],
  [`${OF_WABA}/opt-outs`, 'view_conversations'],
  [`${OF_WABA}/opt-outs*`, 'none'],
  [`${OF_WABA}/keys/requests/:id/reveal`, 'none', 'reveal_secrets'],
  [`${OF_WABA}/keys*`, 'request_keys', 'request_keys'],
  [`${OF_WABA}/audit*`, 'audit'],
  [`${OF_WABA}/users*`, 'none'],
  [`${OF_WABA}/erasures*`, 'none'],
  [`${OF_WABA}/data`, 'none'],
  // The product of the operator may sell messages at another price.
  [`${OF_WABA}/usage*`, 'none'],
];

const ROWS = NEEDS.map(([path, look, send = 'none']) => ({ parts: path.split('/'), look, send }));

/** A last part that ends with `*` stands for itself and all that follows. */
function fits(parts: readonly string[], path: readonly string[]): boolean {
  const hasRest = parts.at(-1)?.endsWith('*') === true;
  if (hasRest ? path.length < parts.length : path.length !== parts.length) return false;
  return parts.every((part, at) => part.startsWith(':') || part.replace('*', '') === path[at]);
}

function needOf(method: string, path: string): Need | undefined {
  const given = path.split('/');
  const row = ROWS.find(({ parts }) => fits(parts, given));
  return method === 'GET' || method === 'HEAD' ? row?.look : row?.send;
}

/** Whether a session may open a page or send a form; one that no link began may all that its role does. `path` may be a route. */
export function mayUse(
  link: Pick<PortalLinkGrant, 'capabilities'> | null | undefined,
  method: string,
  path: string,
): boolean {
  if (!link) return true;
  const [bare = ''] = path.split(/[?#]/);
  const need = needOf(method, bare) ?? 'none';
  return need === 'all' || (need !== 'none' && link.capabilities.includes(need));
}

/** A WABA that the link leaves out is for its session what one of another tenant is. */
export function seesWaba(link: Pick<PortalLinkGrant, 'wabaIds'> | null, wabaId: string): boolean {
  return link?.wabaIds?.includes(wabaId) ?? true;
}

/** A page that does not say what it wants of links is a mistake that must not wait for a request. */
export function requireNeedsOfLinks(scope: FastifyInstance): void {
  scope.addHook('onRoute', ({ method, url, config }) => {
    const access = config?.pageAccess;
    if (access === 'open' || access === 'operator') return;
    const unsaid = [method].flat().find((one) => needOf(one, url) === undefined);
    if (unsaid !== undefined)
      throw new Error(`page ${unsaid} ${url} does not say which portal links it is for`);
  });
}
