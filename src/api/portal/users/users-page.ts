import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { RequestError } from '../../../platform/request-input.ts';
import {
  invitationsOf,
  inviteUser,
  type MadeInvitation,
  withdrawInvitation,
} from '../../../users/invitations.ts';
import { changeRole, disableMember, enableMember, membersOf, removeMember } from '../../../users/members.ts';
import { makePasswordLink } from '../../../users/password-links.ts';
import type { TenantAuthority } from '../../../users/user-authority.ts';
import { accountObjectId } from '../../external/object-id.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, type Viewer, viewerOf, wabaOf } from '../access/viewer.ts';
import { postForm, selectField, textField } from '../components/form.ts';
import { noticeAfter } from '../components/notice.ts';
import { numberedPage, numberedPager } from '../components/pager.ts';
import { EMPTY_FORM, formLine } from '../form-values.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { invitationTable, memberTable, oneTimeLink, removalQuestion } from './user-tables.ts';

const PATH = '/portal/w/:wabaId/users';
const TITLE = 'Users';

const DONE = {
  role: 'The role is changed. The user has to sign in again.',
  disabled: 'The user is disabled and signed out.',
  enabled: 'The user can sign in again.',
  removed: 'The user no longer belongs to this tenant.',
  withdrawn: 'The invitation is withdrawn. Its link no longer works.',
};

const PAGE_SIZE = 40;

const CHANGES = { role: 'role', disable: 'disabled', enable: 'enabled', remove: 'removed' } as const;

type InviteForm = { email: string; role: string; error: RequestError | null };

const text = Type.Optional(Type.String());
const querystring = Type.Object({ done: text, page: text });

const EMPTY_INVITE: InviteForm = { email: '', role: 'member', error: null };

/** /portal/w/:wabaId/users: administrators look after the users of their tenant. */
export function tenantUserPages(app: PortalApp, context: PortalContext): void {
  const { database } = context;
  app.get(PATH, { config: PAGES.admin, schema: { querystring } }, async (request, reply) =>
    showUsers(request, reply, context, { ...EMPTY_INVITE, ...request.query }),
  );

  const body = Type.Object({ email: formLine(), role: formLine() });
  app.post(`${PATH}/invite`, { config: PAGES.admin, schema: { body } }, async (request, reply) => {
    const { email, role } = request.body;
    const { tenantId } = wabaOf(request);
    try {
      const made = await inviteUser({ database }, authorityOf(request), { email, role, tenantId });
      return showLink(request, reply, context, made);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      return await showUsers(request, reply, context, { email, role, error });
    }
  });

  const params = Type.Object({ id: Type.String() });
  const schema = { params, querystring, body: EMPTY_FORM };
  app.post(`${PATH}/:id/password-link`, { config: PAGES.admin, schema }, async (request, reply) => {
    const made = await makePasswordLink(
      { database },
      authorityOf(request),
      accountObjectId(request.params.id),
    );
    return showLink(request, reply, context, made);
  });
  app.post(`${PATH}/invitations/:id/withdraw`, { config: PAGES.admin, schema }, async (request, reply) => {
    await withdrawInvitation({ database }, authorityOf(request), accountObjectId(request.params.id));
    return reply.redirect(hrefAfter(request, 'withdrawn', request.query), 303);
  });
  removalPage(app, context);
  userChanges(app, context);
}

/** Asks first. */
function removalPage(app: PortalApp, { database }: PortalContext): void {
  const params = Type.Object({ id: Type.String() });
  app.get(
    `${PATH}/:id/remove`,
    { config: PAGES.admin, schema: { params, querystring } },
    async (request, reply) => {
      const id = accountObjectId(request.params.id);
      const waba = wabaOf(request);
      const member = (await membersOf({ database }, waba.tenantId)).find((one) => one.id === id);
      if (member === undefined) throw pageNotFound();
      const viewer = viewerOf(request);
      const path = usersPath(request);
      const text = `${member.email} loses all access to ${waba.businessName} at once. Only a new invitation restores it.`;
      const body = removalQuestion(viewer, { action: `${path}/${id}/remove`, backPath: path, text });
      const trail = [{ label: TITLE, href: path }];
      return sendPage(reply, {
        title: `Remove ${member.email}?`,
        viewer,
        waba,
        active: 'users',
        trail,
        body,
      });
    },
  );
}

function userChanges(app: PortalApp, { database }: PortalContext): void {
  const params = Type.Object({ id: Type.String() });
  const body = Type.Object({ role: Type.Optional(formLine()) });
  for (const change of ['role', 'disable', 'enable', 'remove'] as const) {
    app.post(
      `${PATH}/:id/${change}`,
      { config: PAGES.admin, schema: { params, querystring, body } },
      async (request, reply) => {
        const authority = authorityOf(request);
        const id = accountObjectId(request.params.id);
        if (change === 'role') await changeRole({ database }, authority, id, request.body.role ?? '');
        if (change === 'disable') await disableMember({ database }, authority, id);
        if (change === 'enable') await enableMember({ database }, authority, id);
        if (change === 'remove') await removeMember({ database }, authority, id);
        return reply.redirect(hrefAfter(request, CHANGES[change], request.query), 303);
      },
    );
  }
}

/** Here an operator, too, administers the users of this tenant only. */
function authorityOf(request: FastifyRequest): TenantAuthority {
  const { tenantId } = wabaOf(request);
  return { actor: actorOf(request), tenantId, userId: viewerOf(request).userId };
}

function usersPath(request: FastifyRequest): string {
  return `/portal/w/${wabaOf(request).wabaId}/users`;
}

/** The part of the list that was looked at, with what was done. */
function hrefAfter(request: FastifyRequest, done: string, { page }: { page?: string }): string {
  return `${usersPath(request)}?${new URLSearchParams({ done, ...(page !== undefined && { page }) })}`;
}

async function showUsers(
  request: FastifyRequest,
  reply: FastifyReply,
  { database, now }: PortalContext,
  { done, page, ...form }: InviteForm & { done?: string | undefined; page?: string | undefined },
): Promise<FastifyReply> {
  const viewer = viewerOf(request);
  const waba = wabaOf(request);
  const { tenantId, businessName } = waba;
  const path = usersPath(request);
  const [users, invitations] = await Promise.all([
    membersOf({ database }, tenantId),
    invitationsOf({ database }, tenantId),
  ]);
  const shown = numberedPage(users, page, PAGE_SIZE);
  const hrefOf = (number: number) => `${path}?page=${number}`;
  const query = shown.page === 1 ? '' : `?page=${shown.page}`;
  const shared = { viewer, path, query, now: new Date(now()) };
  const body = html`${memberTable(shared, shown.rows)}${numberedPager(shown, hrefOf)}
<h2>Open invitations</h2>
${invitationTable(shared, invitations)}
<h2>Invite a user</h2>
${inviteForm(viewer, path, form)}`;
  const lead = `The users of ${businessName}, for all its WABAs.`;
  const view = { title: TITLE, viewer, waba, active: 'users', lead, notice: noticeAfter(done, DONE), body };
  return sendPage(reply, view, form.error === null ? 200 : 422);
}

function inviteForm(viewer: Viewer, path: string, { email, role, error }: InviteForm): Markup {
  const about = (field: string) =>
    error !== null && (error.param ?? 'email') === field ? error.message : null;
  const options = [
    { value: 'member', label: 'Member: sees everything, changes nothing' },
    { value: 'admin', label: 'Administrator: changes webhooks, keys and users' },
  ];
  return postForm(
    viewer,
    `${path}/invite`,
    html`${textField({ label: 'E-mail address', name: 'email', type: 'email', value: email, required: true, error: about('email') })}
${selectField({ label: 'Role', name: 'role', value: role, options, error: about('role') })}
<div class="buttons"><button class="primary">Create an invitation link</button></div>`,
  );
}

/** The one page that shows a link: it is in no URL, in no log, and cannot be opened again. */
function showLink(
  request: FastifyRequest,
  reply: FastifyReply,
  { publicUrl }: PortalContext,
  made: MadeInvitation,
): FastifyReply {
  const path = usersPath(request);
  const trail = [{ label: TITLE, href: path }];
  const body = oneTimeLink(publicUrl, made, path);
  return sendPage(reply, {
    title: 'One-time link',
    viewer: viewerOf(request),
    waba: wabaOf(request),
    active: 'users',
    trail,
    body,
  });
}
