import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { RequestError } from '../../../platform/request-input.ts';
import { invitationsOf, inviteUser } from '../../../users/invitations.ts';
import { changeRole, disableMember, enableMember, membersOf, removeMember } from '../../../users/members.ts';
import type { TenantAuthority } from '../../../users/user-authority.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown, pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, type Viewer, viewerOf, wabaOf } from '../access/viewer.ts';
import { postForm, selectField, textField } from '../components/form.ts';
import { numberedPage, numberedPager } from '../components/pager.ts';
import { formLine, formValues } from '../form-values.ts';
import { html, type Markup } from '../markup.ts';
import { hrefWith } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { DONE, linkTools, sendOneTimeLink, type UserPlace, userActions } from './user-actions.ts';
import { userSessionPages } from './user-sessions-page.ts';
import { invitationTable, memberTable } from './user-tables.ts';

const PATH = '/portal/w/:wabaId/users';
const TENANT_DONE = { ...DONE, removed: 'The user no longer belongs to this tenant.' };

const PAGE_SIZE = 40;

type InviteForm = { email: string; role: string; error: RequestError | null };

const text = Type.Optional(Type.String());
const querystring = Type.Object({ done: text, page: text });

const EMPTY_INVITE: InviteForm = { email: '', role: 'member', error: null };

/** /portal/w/:wabaId/users: the users of a tenant, for its administrators. */
export function tenantUserPages(app: PortalApp, context: PortalContext): void {
  app.get(PATH, { config: PAGES.admin, schema: { querystring } }, async (request, reply) =>
    showUsers(request, reply, context, EMPTY_INVITE),
  );

  const place = tenantPlace(context);
  const body = Type.Object({ email: formLine(), role: formLine() });
  const config = PAGES.admin;
  app.post(`${PATH}/invite`, { config, schema: { body } }, async (request, reply) => {
    const { email, role } = request.body;
    const authority = authorityOf(request);
    return await orShown(
      async () => {
        const given = { email, role, tenantId: authority.tenantId };
        const made = await inviteUser(linkTools(context), authority, given);
        return sendOneTimeLink(request, reply, context, place, made);
      },
      (error) => showUsers(request, reply, context, { email, role, error }),
    );
  });
  userActions(app, context, place);
  userSessionPages(app, context, place);
}

function tenantPlace({ database }: PortalContext): UserPlace {
  const tools = { database };
  return {
    route: PATH,
    config: PAGES.admin,
    active: 'users',
    querystring,
    listHref: (request, done) => usersHref(request, { page: pageOf(request), done }),
    sessionsHref: (request, id, done) => hrefWith(`${usersHref(request)}/${id}/sessions`, { done }),
    authorityOf,
    removalOf: async (request, id) => {
      const { tenantId, businessName } = wabaOf(request);
      const member = (await membersOf(tools, tenantId)).find((one) => one.id === id);
      if (member === undefined) throw pageNotFound();
      const { email } = member;
      const text = `${email} loses all access to ${businessName} at once. Only a new invitation restores it.`;
      return { email, text };
    },
    changes: {
      role: (request, id, role) => changeRole(tools, authorityOf(request), id, role),
      disable: (request, id) => disableMember(tools, authorityOf(request), id),
      enable: (request, id) => enableMember(tools, authorityOf(request), id),
      remove: (request, id) => removeMember(tools, authorityOf(request), id),
    },
  };
}

/** Here an operator, too, administers the users of this tenant only. */
function authorityOf(request: FastifyRequest): TenantAuthority {
  const { tenantId } = wabaOf(request);
  return { actor: actorOf(request), tenantId, userId: viewerOf(request).userId };
}

function pageOf(request: FastifyRequest): string {
  return formValues(request.query).text('page');
}

function usersHref(
  request: FastifyRequest,
  parameters: { page?: string; done?: string | undefined } = {},
): string {
  return hrefWith(`/portal/w/${wabaOf(request).wabaId}/users`, parameters);
}

async function showUsers(
  request: FastifyRequest,
  reply: FastifyReply,
  { database, now, config }: PortalContext,
  form: InviteForm,
): Promise<FastifyReply> {
  const viewer = viewerOf(request);
  const waba = wabaOf(request);
  const { tenantId, businessName } = waba;
  const path = usersHref(request);
  const [users, invitations] = await Promise.all([
    membersOf({ database }, tenantId),
    invitationsOf({ database }, tenantId),
  ]);
  const shown = numberedPage(users, pageOf(request), PAGE_SIZE);
  const hrefOf = (number: number) => `${path}?page=${number}`;
  const query = shown.page === 1 ? '' : `?page=${shown.page}`;
  const hasPasswords = config.portal.passwordSignIn;
  const shared = { viewer, path, query, now: new Date(now()), hasPasswords };
  const body = html`${memberTable(shared, shown.rows)}${numberedPager(shown, hrefOf)}
<h2>Pending invitations</h2>
${invitationTable(shared, invitations)}
<h2>Invite a user</h2>
${inviteForm(viewer, path, form)}`;
  const lead = `The users of ${businessName}, for all its WABAs.`;
  const view = { title: 'Users', active: 'users', lead, done: TENANT_DONE, body };
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
