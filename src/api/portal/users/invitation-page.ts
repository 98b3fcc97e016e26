import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { RequestError } from '../../../platform/request-input.ts';
import type { Invitation } from '../../../users/invitation-store.ts';
import {
  acceptInvitation,
  invitationBehind,
  joinWithAccount,
  unknownInvitation,
} from '../../../users/invitations.ts';
import { setPasswordByLink } from '../../../users/password-links.ts';
import type { FormTokens } from '../access/form-tokens.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown, PageError, pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { beginInBrowser, sessionCookie } from '../access/session-cookie.ts';
import { sessionOf, type Viewer, viewerIfAny, visitorOf } from '../access/viewer.ts';
import { actionButton, postForm } from '../components/form.ts';
import { noticeBox } from '../components/notice.ts';
import { formLine } from '../form-values.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { invitedAs, personFields } from './invited-person.ts';
import type { SignInLimit } from './sign-in-limit.ts';

const PATH = '/portal/invitations/:token';

type LinkTools = { tokens: FormTokens; limit: SignInLimit; hasOidc: boolean; hasPasswords: boolean };
type Form = { token: string; name: string; password: string };
type Shown = { token: string; name: string; error: RequestError | null };

/** /portal/invitations/:token: a link shows a form, and only the form uses the link up. */
export function invitationPages(app: PortalApp, context: PortalContext, tools: LinkTools): void {
  const params = Type.Object({ token: Type.String() });
  app.get(PATH, { config: PAGES.open, schema: { params } }, async (request, reply) => {
    const { token } = request.params;
    const invitation = await linkBehind(context, token);
    return showLink(request, reply, { tools, invitation }, { token, name: '', error: null });
  });

  const body = Type.Object({ name: Type.Optional(formLine()), password: Type.Optional(formLine(4_096)) });
  app.post(PATH, { config: PAGES.open, schema: { params, body } }, async (request, reply) => {
    const { token } = request.params;
    const { name = '', password = '' } = request.body;
    const invitation = await linkBehind(context, token);
    return await orShown(
      async () => {
        const form = { token, name, password };
        return await orClosed(() => useLink(request, reply, context, { tools, invitation, form }));
      },
      (error) => showLink(request, reply, { tools, invitation }, { token, name, error }),
    );
  });
}

/** Links to a new password are closed where none can be used. */
async function linkBehind({ database, config }: PortalContext, token: string): Promise<Invitation> {
  return await orClosed(async () => {
    const invitation = await invitationBehind({ database }, token);
    if (invitation.userId !== null && !config.portal.passwordSignIn) throw unknownInvitation();
    return invitation;
  });
}

async function useLink(
  request: FastifyRequest,
  reply: FastifyReply,
  context: PortalContext,
  { tools: { limit }, invitation, form }: { tools: LinkTools; invitation: Invitation; form: Form },
): Promise<FastifyReply> {
  const { database } = context;
  const visitor = visitorOf(request);
  if (invitation.userId !== null) {
    await setPasswordByLink({ database }, invitation, form.password, visitor);
    sessionCookie.clear(reply);
    return reply.redirect('/portal/sign-in?done=password-changed', 303);
  }
  if (viewerIfAny(request) !== null) {
    const token = await joinWithAccount({ database }, invitation, sessionOf(request), visitor);
    await beginInBrowser(context, request, reply, token);
    return reply.redirect('/portal', 303);
  }
  if (!context.config.portal.passwordSignIn) throw pageNotFound();
  // A password that opens an account of this address joins with it, so each is a guess, whatever comes of it.
  await limit.count(request, `invitation of ${invitation.email}`);
  const token = await acceptInvitation({ database }, invitation, form, visitor);
  await limit.succeeded(request, null);
  await beginInBrowser(context, request, reply, token);
  return reply.redirect('/portal', 303);
}

function showLink(
  request: FastifyRequest,
  reply: FastifyReply,
  { tools, invitation }: { tools: LinkTools; invitation: Invitation },
  shown: Shown,
): FastifyReply {
  const { email, userId } = invitation;
  const path = `/portal/invitations/${shown.token}`;
  const status = shown.error === null ? 200 : 422;
  const address = html`<p>E-mail address: <strong>${email}</strong></p>`;
  const token = tools.tokens.issue(request, reply);
  if (userId !== null) {
    const lead = 'Choose a new password, and sign in with it. All sessions of this account end.';
    const fields = { error: shown.error, label: 'New password' };
    const form = postForm(token, path, html`${personFields(fields)}${submit('Set the password')}`);
    return sendPage(
      reply,
      { title: 'New password', viewer: null, lead, body: html`${address}${form}` },
      status,
    );
  }
  const viewer = viewerIfAny(request);
  const body =
    viewer === null ? newAccount(token, path, shown, tools) : withAccount(viewer, path, invitation, shown);
  const view = { title: 'Welcome', viewer: null, lead: `You are invited as ${invitedAs(invitation)}.` };
  return sendPage(reply, { ...view, body: html`${address}${body}` }, status);
}

/** The same whether the address has an account or not: the link proves nothing about whose the address is. */
function newAccount(
  token: Pick<Viewer, 'csrfToken'>,
  path: string,
  { name, error }: Shown,
  { hasOidc, hasPasswords }: LinkTools,
): Markup {
  if (!hasPasswords) {
    return html`<p>Sign in with your identity provider as the person with this address. You are asked there whether to join.</p>
<p><a class="button primary" href="/portal/oidc/start">Sign in with your identity provider</a></p>`;
  }
  const hint = html`<p class="hint">If you have an account with this address already, <a href="/portal/sign-in?next=${encodeURIComponent(path)}">sign in</a> first to join with it${hasOidc && html`, or <a href="/portal/oidc/start">sign in with your identity provider</a>`}.</p>`;
  return html`${hint}${postForm(token, path, html`${personFields({ name, error })}${submit('Create the account')}`)}`;
}

function withAccount(viewer: Viewer, path: string, { email }: Invitation, { error }: Shown): Markup {
  const problem = error !== null && noticeBox({ kind: 'error', text: error.message });
  if (viewer.email !== email) {
    return html`<p>You are signed in as <strong>${viewer.email}</strong>. Sign out, and open the link again.</p>${actionButton(viewer, '/portal/sign-out', 'Sign out')}`;
  }
  return html`${problem}<p>You are signed in as ${viewer.name || viewer.email}. You join with this account, and can go from one tenant to another at the top of each page.</p>
<div class="buttons">${actionButton(viewer, path, 'Join', 'primary')}<a class="button" href="/portal">Not now</a></div>`;
}

function submit(label: string): Markup {
  return html`<div class="buttons"><button class="primary">${label}</button></div>`;
}

/** One page for links that were used, withdrawn, are too old, or never were. */
async function orClosed<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof RequestError) || error.code !== 'unknown_invitation') throw error;
    throw new PageError(404, 'This link does not work', `${error.message} Ask for a new one, or sign in.`);
  }
}
