import { Type } from 'typebox';
import { signInProven } from '../../../accounts/oidc-sign-in.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { localPath } from './local-path.ts';
import type { OidcAttempt, OidcClient } from './oidc-client.ts';
import { PAGES } from './page-access.ts';
import { PageError } from './page-error.ts';
import { oidcCookie } from './session-cookie.ts';
import { beginInBrowser } from './session-start.ts';
import { visitorOf } from './visitor.ts';

const COOKIE_PLACE = 'portal|oidc attempt';
const VALID_MS = 600_000;

type Kept = OidcAttempt & { next: string; startedAt: number };

/** /portal/oidc/start and /portal/oidc/callback: signing in at an OpenID provider. */
export function oidcPages(app: PortalApp, context: PortalContext, client: OidcClient): void {
  const { database, now } = context;
  const { secretBox } = context.accounts;

  const querystring = Type.Object({ next: Type.Optional(Type.String()) });
  app.get('/portal/oidc/start', { config: PAGES.open, schema: { querystring } }, async (request, reply) => {
    const { url, attempt } = await orRefused(request, () => client.begin());
    const kept: Kept = { ...attempt, next: localPath(request.query.next), startedAt: now() };
    oidcCookie.set(reply, secretBox.seal(JSON.stringify(kept), COOKIE_PLACE));
    return reply.redirect(url, 303);
  });

  app.get('/portal/oidc/callback', { config: PAGES.open }, async (request, reply) => {
    oidcCookie.clear(reply);
    const person = await orRefused(request, async () => {
      const kept = JSON.parse(secretBox.open(oidcCookie.read(request) ?? '', COOKIE_PLACE)) as Kept;
      if (now() - kept.startedAt > VALID_MS) throw new Error('the sign-in took too long');
      return { ...(await client.finish(request.url, kept)), next: kept.next };
    });
    const token = await signInProven({ database }, person, visitorOf(request));
    await beginInBrowser(context, request, reply, token);
    return reply.redirect(person.next, 303);
  });
}

/** What a provider says of its errors is for the log: the text comes through the browser. */
async function orRefused<T>(
  request: { log: { warn(line: object, text: string): void } },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    request.log.warn({ err: error }, 'sign-in at the OpenID provider failed');
    throw new PageError(
      400,
      'Sign-in did not work',
      'Your identity provider did not confirm who you are, or it took too long. Start again from the sign-in page.',
    );
  }
}
