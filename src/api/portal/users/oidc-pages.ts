import type { FastifyRequest } from 'fastify';
import {
  invitationsForProven,
  linkIdentity,
  notInvited,
  type ProvenPerson,
  proveAtProvider,
  signInProven,
  unlinkIdentity,
} from '../../../features/users/oidc-sign-in.ts';
import { checkOwnPassword } from '../../../features/users/sign-in.ts';
import { PAGES, withFreshProof } from '../access/page-access.ts';
import { PageError } from '../access/page-error.ts';
import { beginInBrowser, oidcCookie } from '../access/session-cookie.ts';
import type { ViewerSession } from '../access/viewer.ts';
import { formLine } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html } from '../markup.ts';
import { localPath } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import type { OidcAttempt, OidcClient } from './oidc-client.ts';
import { keepProven, oidcJoinPages } from './oidc-join-page.ts';
import type { SignInLimit } from './sign-in-limit.ts';

const COOKIE_PLACE = 'portal|oidc attempt';
const VALID_MS = 600_000;
const IDENTITY = '/portal/account/identity';

/** `linkTo`: the session whose account the person is to sign in to; `provesFor`: whose user is to prove presence. */
type Kept = OidcAttempt & {
  next: string;
  startedAt: number;
  linkTo: string | null;
  provesFor: string | null;
};
type OidcTools = { client: OidcClient; limit: SignInLimit };

export function oidcPages(app: PortalApp, context: PortalContext, tools: OidcTools): void {
  const { accounts, now } = context;
  const place = { access: PAGES.open, active: '' };
  viewPage(app, context, {
    ...place,
    path: '/portal/oidc/start',
    query: ['next', 'again'],
    view: async (visit) => {
      const provesFor = visit.query('again') === '' ? null : (sessionIn(visit)?.id ?? null);
      const wanted = { next: localPath(visit.query('next')), linkTo: null, provesFor };
      return await begin(visit, tools.client, wanted);
    },
  });
  viewPage(app, context, {
    ...place,
    path: '/portal/oidc/callback',
    view: async (visit) => {
      const { request, reply } = visit;
      oidcCookie.clear(reply);
      const { kept, person } = await orRefused(request, async () => {
        const sealed = oidcCookie.read(request) ?? '';
        const found = JSON.parse(accounts.secretBox.open(sealed, COOKIE_PLACE)) as Kept;
        if (now() - found.startedAt > VALID_MS) throw new Error('the sign-in took too long');
        return { kept: found, person: await tools.client.finish(request.url, found) };
      });
      return await comeBack(visit, kept, person);
    },
  });
  if (context.config.portal.passwordSignIn) identityForms(app, context, tools);
  oidcJoinPages(app, context);
}

/** A session that waits for its second step, too. */
function sessionIn({ request }: Visit): ViewerSession | null {
  return request.portalSession ?? request.portalAwaiting;
}

/** Keeps what the way back needs, and returns where to send the browser. */
async function begin(
  { request, reply, context: { accounts, now } }: Visit,
  client: OidcClient,
  wanted: Pick<Kept, 'next' | 'linkTo' | 'provesFor'>,
): Promise<string> {
  const { url, attempt } = await orRefused(request, () => client.begin(wanted.provesFor !== null));
  const kept: Kept = { ...attempt, ...wanted, startedAt: now() };
  oidcCookie.set(reply, accounts.secretBox.seal(JSON.stringify(kept), COOKIE_PLACE));
  return url;
}

async function comeBack(
  visit: Visit,
  { linkTo, provesFor, next, startedAt }: Kept,
  person: ProvenPerson,
): Promise<string> {
  const { request, context } = visit;
  if (linkTo !== null) {
    await linkIdentity(context, ownSession(request.portalSession, linkTo), person, visit.actor);
    return '/portal/account?done=linked';
  }
  if (provesFor === null) return await enter(visit, person, next);
  await proveAtProvider(context, ownSession(sessionIn(visit), provesFor), person, startedAt);
  return next;
}

/** Signs in the person that the provider confirms, and asks before anything is joined. */
async function enter(visit: Visit, person: ProvenPerson, next: string): Promise<string> {
  const { context, reply } = visit;
  const [token, invitations] = [
    await signInProven(context, person, visit.visitor),
    await invitationsForProven(context, person),
  ];
  if (token === null && invitations.length === 0) throw notInvited();
  if (token !== null) await beginInBrowser(visit, token);
  if (invitations.length === 0) return next;
  keepProven(reply, context, { person, next });
  return '/portal/oidc/join';
}

/** POST /portal/account/identity/…: the present password shows that it is the account's holder who asks. */
function identityForms(app: PortalApp, context: PortalContext, { client, limit }: OidcTools): void {
  const access = withFreshProof(PAGES.signedIn, 'code');
  const form = { access, active: 'account', fields: { own: formLine(4_096) }, needsAll: true } as const;
  action(app, context, {
    ...form,
    path: `${IDENTITY}/link`,
    act: async (visit, given) => {
      const { id, viewer } = visit.session;
      await limit.count(visit.request, `user ${viewer.userId}`);
      await checkOwnPassword(context, viewer.userId, given.text('own'));
      await limit.succeeded(visit.request, `user ${viewer.userId}`);
      const url = await begin(visit, client, { next: '/portal/account', linkTo: id, provesFor: null });
      // Not a redirect: the policy of the pages lets forms lead to this site only.
      const body = html`<p>Sign in there as the person who is to use this account.</p><p><a class="button" href="${url}">Continue at your identity provider</a></p>`;
      return { title: 'Connect your identity provider', body };
    },
  });
  action(app, context, {
    ...form,
    path: `${IDENTITY}/unlink`,
    act: async ({ request, session, actor }, given) => {
      const account = `user ${session.viewer.userId}`;
      await limit.count(request, account);
      await unlinkIdentity(context, session, given.text('own'), actor);
      await limit.succeeded(request, account);
      return '/portal/account?done=unlinked';
    },
  });
}

/** The session in which it began must still be open. */
function ownSession(session: ViewerSession | null, id: string): ViewerSession {
  if (session === null || session.id !== id) throw refused();
  return session;
}

/** What a provider says of its errors is for the log: the text comes through the browser. */
async function orRefused<T>({ log }: Pick<FastifyRequest, 'log'>, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    log.warn({ err: error }, 'sign-in at the OpenID provider failed');
    throw refused();
  }
}

function refused(): PageError {
  return new PageError(
    400,
    'Sign-in did not work',
    'Your identity provider did not confirm who you are, or it took too long. Start again from the sign-in page.',
  );
}
