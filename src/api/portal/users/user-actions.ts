import type { FastifyReply, FastifyRequest } from 'fastify';
import { type TObject, Type } from 'typebox';
import { mailerOf } from '../../../mail/mails.ts';
import { type LinkTools, type MadeInvitation, withdrawInvitation } from '../../../users/invitations.ts';
import { makePasswordLink } from '../../../users/password-links.ts';
import type { Authority } from '../../../users/user-authority.ts';
import { accountObjectId } from '../../external/schema-kit.ts';
import type { PAGES } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { viewerOf } from '../access/viewer.ts';
import { copyable } from '../components/copyable.ts';
import { actionButton } from '../components/form.ts';
import { exactTime } from '../components/time.ts';
import { EMPTY_FORM, formLine } from '../form-values.ts';
import { html } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

const CHANGES = { role: 'role', disable: 'disabled', enable: 'enabled', remove: 'removed' } as const;
type Change = keyof typeof CHANGES;

/** Where users are administered: the page of a tenant's users, or the operator's page of all. */
export type UserPlace = {
  /** The route of the list. */
  route: string;
  config: typeof PAGES.admin | typeof PAGES.operator;
  active: 'users' | 'operator/users';
  querystring: TObject;
  /** The part of the list that the viewer came from, with a notice of what was done. */
  listHref(request: FastifyRequest, done?: string): string;
  /** The page of a user's sessions, with a notice of what was done. */
  sessionsHref(request: FastifyRequest, id: string, done?: string): string;
  authorityOf(request: FastifyRequest): Authority;
  /** The user to be removed, and what that means. */
  removalOf(request: FastifyRequest, id: string): Promise<{ email: string; text: string }>;
  changes: Record<Change, (request: FastifyRequest, id: string, role: string) => Promise<void>>;
};

/** The notices of both lists. */
export const DONE = {
  role: 'The role is changed. The user has to sign in again.',
  disabled: 'The user is disabled and signed out.',
  enabled: 'The user can sign in again.',
  mailed:
    'The link is on its way by e-mail. It works once: an invitation for seven days, a link for a new password for one day.',
  withdrawn: 'The invitation is withdrawn. Its link no longer works.',
};

/** What can be done about one user or one invitation of a list. */
export function userActions(app: PortalApp, context: PortalContext, place: UserPlace): void {
  const { database } = context;
  const { route, config, querystring, listHref, authorityOf } = place;
  const params = Type.Object({ id: Type.String() });
  const options = { config, schema: { params, querystring, body: EMPTY_FORM } };
  if (context.config.portal.passwordSignIn) {
    app.post(`${route}/:id/password-link`, options, async (request, reply) => {
      const id = accountObjectId(request.params.id);
      const made = await makePasswordLink(linkTools(context), authorityOf(request), id);
      return sendOneTimeLink(request, reply, context, place, made);
    });
  }
  app.post(`${route}/invitations/:id/withdraw`, options, async (request, reply) => {
    await withdrawInvitation({ database }, authorityOf(request), accountObjectId(request.params.id));
    return reply.redirect(listHref(request, 'withdrawn'), 303);
  });
  const body = Type.Object({ role: Type.Optional(formLine()) });
  for (const change of Object.keys(CHANGES) as Change[]) {
    const schema = { params, querystring, body };
    app.post(`${route}/:id/${change}`, { config, schema }, async (request, reply) => {
      await place.changes[change](request, accountObjectId(request.params.id), request.body.role ?? '');
      return reply.redirect(listHref(request, CHANGES[change]), 303);
    });
  }
  removalPage(app, place);
}

/** Asks before a user is removed. */
function removalPage(app: PortalApp, { route, config, querystring, active, ...place }: UserPlace): void {
  const schema = { params: Type.Object({ id: Type.String() }), querystring };
  app.get(`${route}/:id/remove`, { config, schema }, async (request, reply) => {
    const { email, text } = await place.removalOf(request, accountObjectId(request.params.id));
    const back = place.listHref(request);
    const remove = actionButton(viewerOf(request), request.url, 'Remove', 'danger');
    return sendPage(reply, {
      title: `Remove ${email}?`,
      active,
      trail: [{ label: 'Users', href: back }],
      body: html`<p>${text}</p><p>The audit log keeps the actions of this user.</p>
<div class="buttons">${remove} <a class="button" href="${back}">Cancel</a></div>`,
    });
  });
}

/** Links go by e-mail where that is set up. */
export function linkTools({ database, config, accounts }: PortalContext): LinkTools {
  return { database, mailer: mailerOf(config, accounts.secretBox) };
}

/**
 * The one page that shows a link: it is in no URL, in no log, and cannot be opened again. One that goes by e-mail is
 * not shown.
 */
export function sendOneTimeLink(
  request: FastifyRequest,
  reply: FastifyReply,
  { publicUrl }: PortalContext,
  { active, listHref }: UserPlace,
  { email, path, isMailed, expiresAt }: MadeInvitation,
): FastifyReply {
  if (isMailed) return reply.redirect(listHref(request, 'mailed'), 303);
  const back = listHref(request);
  return sendPage(reply, {
    title: 'One-time link',
    active,
    trail: [{ label: 'Users', href: back }],
    body: html`<div class="card"><p>Send this link to <strong>${email}</strong>. It works once, until ${exactTime(expiresAt)}, and is not shown again.</p>
<p>${copyable(`${publicUrl}${path}`)}</p></div>
<p><a class="button" href="${back}">Back to the users</a></p>`,
  });
}
