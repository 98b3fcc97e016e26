import type { CookieSerializeOptions } from '@fastify/cookie';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { endSessions } from '../../../features/users/user-sessions.ts';
import type { Visit } from '../kits/visit.ts';
import { isFramed } from './framing.ts';

/** With this prefix, browsers take a cookie from this host only: no neighbouring subdomain can plant one. */
const SESSION_COOKIE = '__Host-heliograph';
const FORM_COOKIE = '__Host-heliograph-form';
const OIDC_COOKIE = '__Host-heliograph-oidc';
const PROVEN_COOKIE = '__Host-heliograph-proven';

const DEVICE_COOKIE = '__Host-heliograph-device';

/** The server ends a session earlier when it is not used. */
const SESSION_SECONDS = 7 * 86_400;

const DEVICE_SECONDS = 180 * 86_400;

const OPTIONS: CookieSerializeOptions = { path: '/', secure: true, httpOnly: true, sameSite: 'lax' };

/** In a frame: kept for frames of that site alone. */
const FRAMED: CookieSerializeOptions = { ...OPTIONS, sameSite: 'none', partitioned: true };

function makeCookie(name: string, maxAge?: number) {
  const nameIn = (request: FastifyRequest) => (isFramed(request) ? `${name}-embed` : name);
  const optionsIn = (request: FastifyRequest) => (isFramed(request) ? FRAMED : OPTIONS);
  return {
    read: (request: FastifyRequest): string | null => request.cookies[nameIn(request)] ?? null,
    set(reply: FastifyReply, value: string): void {
      const { request } = reply;
      reply.setCookie(nameIn(request), value, {
        ...optionsIn(request),
        ...(maxAge !== undefined && { maxAge }),
      });
    },
    clear(reply: FastifyReply): void {
      const { request } = reply;
      reply.clearCookie(nameIn(request), optionsIn(request));
    },
  };
}

export const sessionCookie = makeCookie(SESSION_COOKIE, SESSION_SECONDS);

/** Binds the forms that are filled in before there is a session to one browser. */
export const formCookie = makeCookie(FORM_COOKIE);

export const deviceCookie = makeCookie(DEVICE_COOKIE, DEVICE_SECONDS);

/** What has to come back unchanged from the OpenID provider, sealed. */
export const oidcCookie = makeCookie(OIDC_COOKIE, 600);

/** The person that the provider confirmed, sealed, until the tenant to join is chosen. */
export const provenCookie = makeCookie(PROVEN_COOKIE, 600);

/** Gives a browser the session that was begun for it; the one that it had ends. */
export async function beginInBrowser({ request, reply, context }: Visit, token: string): Promise<void> {
  const previous = request.portalSession ?? request.portalAwaiting;
  if (previous !== null) await endSessions(context.database, previous.viewer.userId, { id: previous.id });
  sessionCookie.set(reply, token);
  formCookie.clear(reply);
}
