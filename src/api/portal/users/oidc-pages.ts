import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import {
  invitationsForProven,
  linkIdentity,
  notInvited,
  type ProvenPerson,
  proveAtProvider,
  signInProven,
  unlinkIdentity,
} from '../../../users/oidc-sign-in.ts';
import { checkOwnPassword } from '../../../users/sign-in.ts';
import type { FormTokens } from '../access/form-tokens.ts';
import { PAGES, withFreshProof } from '../access/page-access.ts';
import { PageError } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { beginInBrowser, oidcCookie } from '../access/session-cookie.ts';
import { actorOf, sessionOf, type ViewerSession, visitorOf } from '../access/viewer.ts';
import { formLine } from '../form-values.ts';
import { html } from '../markup.ts';
import { localPath } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import type { OidcAttempt, OidcClient } from './oidc-client.ts';
import { keepProven, oidcJoinPages } from './oidc-join-page.ts';
import type { SignInLimit } from './sign-in-limit.ts';

const COOKIE_PLACE = 'portal|oidc attempt';
const VALID_MS = 600_000;
const IDENTITY = '/portal/account/identity';

/**
 * `linkTo` is the session whose account the person is to be able to sign in to, `provesFor` the one whose user is to show
 * to be there; both null: it is a sign-in.
 */
type Kept = OidcAttempt & {
  next: string;
  startedAt: number;
  linkTo: string | null;
  provesFor: string | null;
};
type OidcTools = { client: OidcClient; tokens: FormTokens; limit: SignInLimit };

/** /portal/oidc/start and /portal/oidc/callback: signing in at an OpenID provider. */
export function oidcPages(app: PortalApp, context: PortalContext, tools: OidcTools): void {
  const { now } = context;
  const { secretBox } = context.accounts;

  const querystring = Type.Object({
    next: Type.Optional(Type.String()),
    again: Type.Optional(Type.String()),
  });
  app.get('/portal/oidc/start', { config: PAGES.open, schema: { querystring } }, async (request, reply) => {
    const next = localPath(request.query.next);
    const session = request.portalSession ?? request.portalAwaiting;
    const provesFor = request.query.again === undefined ? null : (session?.id ?? null);
    const wanted = { next, linkTo: null, provesFor };
    return reply.redirect(await begin(request, reply, context, tools.client, wanted), 303);
  });

  app.get('/portal/oidc/callback', { config: PAGES.open }, async (request, reply) => {
    oidcCookie.clear(reply);
    const { kept, person } = await orRefused(request, async () => {
      const found = JSON.parse(secretBox.open(oidcCookie.read(request) ?? '', COOKIE_PLACE)) as Kept;
      if (now() - found.startedAt > VALID_MS) throw new Error('the sign-in took too long');
      return { kept: found, person: await tools.client.finish(request.url, found) };
    });
    if (kept.linkTo !== null) return await link(request, reply, context, { person, linkTo: kept.linkTo });
    if (kept.provesFor !== null) {
      const session = ownSession(request.portalSession ?? request.portalAwaiting, kept.provesFor);
      await proveAtProvider(context, session, person, kept.startedAt);
      return reply.redirect(kept.next, 303);
    }
    return await enter(request, reply, context, { person, next: kept.next });
  });
  if (context.config.portal.passwordSignIn) identityForms(app, context, tools);
  oidcJoinPages(app, context, tools.tokens);
}

/** Keeps what the way back needs, and returns where to send the browser. */
async function begin(
  request: FastifyRequest,
  reply: FastifyReply,
  { accounts, now }: PortalContext,
  client: OidcClient,
  wanted: Pick<Kept, 'next' | 'linkTo' | 'provesFor'>,
): Promise<string> {
  const { url, attempt } = await orRefused(request, () => client.begin(wanted.provesFor !== null));
  const kept: Kept = { ...attempt, ...wanted, startedAt: now() };
  oidcCookie.set(reply, accounts.secretBox.seal(JSON.stringify(kept), COOKIE_PLACE));
  return url;
}

/** Signs in the person that the provider confirms, and asks before anything is joined. */
async function enter(
  request: FastifyRequest,
  reply: FastifyReply,
  context: PortalContext,
  { person, next }: { person: ProvenPerson; next: string },
): Promise<FastifyReply> {
  const { database } = context;
  const [token, invitations] = [
    await signInProven({ database }, person, visitorOf(request)),
    await invitationsForProven({ database }, person),
  ];
  if (token === null && invitations.length === 0) throw notInvited();
  if (token !== null) await beginInBrowser(context, request, reply, token);
  if (invitations.length === 0) return reply.redirect(next, 303);
  keepProven(reply, context, { person, next });
  return reply.redirect('/portal/oidc/join', 303);
}

/** POST /portal/account/identity/…: the present password shows that it is the account's holder who asks. */
function identityForms(app: PortalApp, context: PortalContext, { client, limit }: OidcTools): void {
  const { database } = context;
  const schema = { body: Type.Object({ own: formLine(4_096) }) };
  const config = withFreshProof(PAGES.signedIn, 'code');
  app.post(`${IDENTITY}/link`, { config, schema }, async (request, reply) => {
    const { id, viewer } = sessionOf(request);
    await limit.count(request, `user ${viewer.userId}`);
    await checkOwnPassword({ database }, viewer.userId, request.body.own);
    await limit.succeeded(request, `user ${viewer.userId}`);
    const wanted = { next: '/portal/account', linkTo: id, provesFor: null };
    const url = await begin(request, reply, context, client, wanted);
    // Not a redirect: the policy of the pages lets forms lead to this site only.
    const body = html`<p>Sign in there as the person who is to use this account.</p><p><a class="button" href="${url}">Continue at your identity provider</a></p>`;
    return sendPage(reply, { title: 'Connect your identity provider', active: 'account', body });
  });
  app.post(`${IDENTITY}/unlink`, { config, schema }, async (request, reply) => {
    const session = sessionOf(request);
    const account = `user ${session.viewer.userId}`;
    await limit.count(request, account);
    await unlinkIdentity({ database }, session, request.body.own, actorOf(request));
    await limit.succeeded(request, account);
    return reply.redirect('/portal/account?done=unlinked', 303);
  });
}

async function link(
  request: FastifyRequest,
  reply: FastifyReply,
  { database }: PortalContext,
  { person, linkTo }: { person: ProvenPerson; linkTo: string },
): Promise<FastifyReply> {
  await linkIdentity({ database }, ownSession(request.portalSession, linkTo), person, actorOf(request));
  return reply.redirect('/portal/account?done=linked', 303);
}

/** The session in which it began must still be open. */
function ownSession(session: ViewerSession | null, id: string): ViewerSession {
  if (session === null || session.id !== id) throw refused();
  return session;
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
