import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { emailOf } from '../../../mail/email-address.ts';
import { signIn, signOut } from '../../../users/sign-in.ts';
import type { FormTokens } from '../access/form-tokens.ts';
import { PAGES, withoutFreshProof } from '../access/page-access.ts';
import { orShown } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { beginInBrowser, oidcCookie, provenCookie, sessionCookie } from '../access/session-cookie.ts';
import { actorOf, sessionOf, viewerIfAny, visitorOf } from '../access/viewer.ts';
import { postForm, textField } from '../components/form.ts';
import { EMPTY_FORM, formLine } from '../form-values.ts';
import { html, type Markup } from '../markup.ts';
import { localPath } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import type { SignInLimit } from './sign-in-limit.ts';

const DONE = {
  'signed-out': 'You are signed out.',
  'password-changed': 'The password is changed. Sign in with it.',
};

type SignInTools = { tokens: FormTokens; limit: SignInLimit; hasOidc: boolean };

/** What the browser keeps of the pages goes; the cookies that know it as one of the user's stay. */
const CLEAR_SITE_DATA = '"cache", "storage"';

/** What is typed must not be what guesses in a session are counted by, such as `user 5`. */
const NO_ADDRESS = 'no address';

type Shown = { next: string; email: string; error: string | null };

/** /portal/sign-in and /portal/sign-out */
export function signInPages(app: PortalApp, context: PortalContext, tools: SignInTools): void {
  const { database } = context;
  const query = Type.Object({ next: Type.Optional(Type.String()) });
  app.get(
    '/portal/sign-in',
    { config: PAGES.open, schema: { querystring: query } },
    async (request, reply) => {
      const next = localPath(request.query.next);
      if (viewerIfAny(request) !== null) return reply.redirect(next, 303);
      return showSignIn(request, reply, context, tools, { next, email: '', error: null });
    },
  );
  if (context.config.portal.passwordSignIn) passwordForm(app, context, tools);

  const reason = 'it ends the session itself';
  const config = { ...withoutFreshProof(PAGES.signedIn, reason), beforeSecondFactor: true } as const;
  app.post('/portal/sign-out', { config, schema: { body: EMPTY_FORM } }, async (request, reply) => {
    await signOut({ database }, sessionOf(request), actorOf(request));
    for (const one of [sessionCookie, oidcCookie, provenCookie]) one.clear(reply);
    reply.header('clear-site-data', CLEAR_SITE_DATA);
    return reply.redirect('/portal/sign-in?done=signed-out', 303);
  });
}

/** The form with e-mail address and password. */
function passwordForm(app: PortalApp, context: PortalContext, tools: SignInTools): void {
  const { database } = context;
  const body = Type.Object({
    email: formLine(),
    password: formLine(4_096),
    next: Type.Optional(formLine(4_096)),
  });
  app.post('/portal/sign-in', { config: PAGES.open, schema: { body } }, async (request, reply) => {
    const { email, password } = request.body;
    const next = localPath(request.body.next);
    const account = emailOf(email) ?? NO_ADDRESS;
    const known = await tools.limit.countSignIn(request, account);
    return await orShown(
      async () => {
        const inBackground = (work: Promise<void>) =>
          void work.catch((error: unknown) => notWritten(request, error));
        const given = { email, password, ...known };
        const { token, ...signedIn } = await signIn({ database, inBackground }, given, visitorOf(request));
        // An owner of one account of an address must not get more guesses for another by signing in to the first.
        await tools.limit.signedIn(request, signedIn.userId, signedIn.isOnlyAccount ? account : null);
        // Who has the password alone must not become known: codes would be counted for them apart.
        if (!signedIn.awaitsCode) tools.limit.knowBrowser(request, reply, signedIn.userId);
        await beginInBrowser(context, request, reply, token);
        return reply.redirect(signedIn.opened > 1 ? '/portal/account?done=several' : next, 303);
      },
      (error) => showSignIn(request, reply, context, tools, { next, email, error: error.message }),
    );
  });
}

function notWritten(request: FastifyRequest, error: unknown): void {
  request.log.error({ err: error }, 'a failed sign-in is missing in the audit log');
}

function showSignIn(
  request: FastifyRequest,
  reply: FastifyReply,
  { config }: PortalContext,
  { tokens, hasOidc }: SignInTools,
  { next, email, error }: Shown,
): FastifyReply {
  const notice = error === null ? null : { kind: 'error' as const, text: error };
  const { passwordSignIn } = config.portal;
  const form =
    passwordSignIn && postForm(tokens.issue(request, reply), '/portal/sign-in', signInFields(next, email));
  const body = html`${form}${hasOidc && oidcLink(next, passwordSignIn)}`;
  return sendPage(
    reply,
    { title: 'Sign in', viewer: null, notice, done: DONE, body },
    error === null ? 200 : 422,
  );
}

function signInFields(next: string, email: string): Markup {
  return html`<input type="hidden" name="next" value="${next}">
${textField({ label: 'E-mail address', name: 'email', type: 'email', value: email, autocomplete: 'username', required: true })}
${textField({ label: 'Password', name: 'password', type: 'password', autocomplete: 'current-password', required: true, hint: 'Forgotten? An administrator can create a link for a new one.' })}
<div class="buttons"><button class="primary">Sign in</button></div>`;
}

function oidcLink(next: string, isSecond: boolean): Markup {
  return html`${isSecond && html`<hr>`}<p><a class="button ${!isSecond && 'primary'}" href="/portal/oidc/start?next=${encodeURIComponent(next)}">Sign in with your identity provider</a></p>`;
}
