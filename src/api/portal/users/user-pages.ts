import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { AccountError, invalidValue } from '../../../platform/account-error.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { inviteUser, type MadeInvitation, withdrawInvitation } from '../../../users/invitations.ts';
import { changeRole } from '../../../users/members.ts';
import { makePasswordLink } from '../../../users/password-links.ts';
import type { Authority } from '../../../users/user-authority.ts';
import { disableUser, enableUser, removeUser, userNamed } from '../../../users/users.ts';
import { accountObjectId } from '../../external/object-id.ts';
import { EMPTY_FORM, formLine } from '../access/form-schema.ts';
import { PAGES } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, viewerOf } from '../access/viewer.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { oneTimeLink } from './one-time-link.ts';
import { EMPTY_INVITE, showUsers, USERS, usersHref, type Wanted } from './user-list.ts';
import { removalQuestion } from './user-tables.ts';

const CHANGES = { role: 'role', disable: 'disabled', enable: 'enabled', remove: 'removed' } as const;

const text = Type.Optional(Type.String({ maxLength: 256 }));
const querystring = Type.Object({ done: text, find: text, tenant: text, page: text });

const OF_ONE = { params: Type.Object({ id: Type.String() }), querystring, body: EMPTY_FORM };

/** /portal/operator/users: everybody who may sign in, and invitations for operators and users of any tenant. */
export function operatorUserPages(app: PortalApp, context: PortalContext): void {
  const { database } = context;
  app.get(USERS, { config: PAGES.operator, schema: { querystring } }, async (request, reply) =>
    showUsers(request, reply, context, request.query, EMPTY_INVITE),
  );

  const body = Type.Object({ email: formLine(), role: formLine(), tenant: formLine() });
  const schema = { querystring, body };
  app.post(`${USERS}/invite`, { config: PAGES.operator, schema }, async (request, reply) => {
    const { email, role, tenant } = request.body;
    try {
      const given = { email, role, tenantId: tenant === '' ? null : tenant };
      const made = await inviteUser({ database }, authorityOf(request), given);
      return showLink(request, reply, context, { made, wanted: request.query });
    } catch (error) {
      if (!(error instanceof AccountError)) throw error;
      return await showUsers(request, reply, context, request.query, { email, role, tenant, error });
    }
  });

  app.post(
    `${USERS}/:id/password-link`,
    { config: PAGES.operator, schema: OF_ONE },
    async (request, reply) => {
      const made = await makePasswordLink(
        { database },
        authorityOf(request),
        accountObjectId(request.params.id),
      );
      return showLink(request, reply, context, { made, wanted: request.query });
    },
  );
  removalPage(app, context);
  userChanges(app, context);
}

function userChanges(app: PortalApp, { database }: PortalContext): void {
  const withdraw = `${USERS}/invitations/:id/withdraw`;
  app.post(withdraw, { config: PAGES.operator, schema: OF_ONE }, async (request, reply) => {
    await withdrawInvitation({ database }, authorityOf(request), accountObjectId(request.params.id));
    return reply.redirect(usersHref({ ...request.query, done: 'withdrawn' }), 303);
  });
  const schema = {
    params: OF_ONE.params,
    querystring,
    body: Type.Object({ role: Type.Optional(formLine()) }),
  };
  for (const change of ['role', 'disable', 'enable', 'remove'] as const) {
    app.post(`${USERS}/:id/${change}`, { config: PAGES.operator, schema }, async (request, reply) => {
      const authority = authorityOf(request);
      const id = accountObjectId(request.params.id);
      if (change === 'role') await changeOnlyRole(database, authority, id, request.body.role ?? '');
      if (change === 'disable') await disableUser({ database }, authority, id);
      if (change === 'enable') await enableUser({ database }, authority, id);
      if (change === 'remove') await removeUser({ database }, authority, id);
      return reply.redirect(usersHref({ ...request.query, done: CHANGES[change] }), 303);
    });
  }
}

/** In the one tenant that somebody belongs to; of several, the tenant's own page of users shows the role. */
async function changeOnlyRole(
  database: Database,
  authority: Authority,
  id: string,
  role: string,
): Promise<void> {
  const { memberships } = await userNamed({ database }, id);
  const [only] = memberships;
  if (only === undefined || memberships.length > 1) {
    throw invalidValue(
      'This account has no role in exactly one tenant; open the page of the tenant.',
      'role',
    );
  }
  await changeRole({ database }, { ...authority, tenantId: only.tenantId }, id, role);
}

/** Asks first. */
function removalPage(app: PortalApp, { database }: PortalContext): void {
  const { params } = OF_ONE;
  const schema = { params, querystring };
  app.get(`${USERS}/:id/remove`, { config: PAGES.operator, schema }, async (request, reply) => {
    const { id, email, memberships } = await userNamed({ database }, accountObjectId(request.params.id));
    const backPath = usersHref(request.query);
    const action = `${USERS}/${id}/remove${backPath.slice(USERS.length)}`;
    const from = memberships.map(({ businessName }) => businessName).join(', ') || 'the operator’s pages';
    const text = `The account ${email} (user ${id}) ends, and with it all access to ${from}, at once.`;
    const viewer = viewerOf(request);
    return sendPage(reply, {
      title: `Remove ${email}?`,
      viewer,
      active: 'operator/users',
      trail: [{ label: 'Users', href: backPath }],
      body: removalQuestion(viewer, { action, backPath, text }),
    });
  });
}

/** An operator administers everybody's users. */
function authorityOf(request: FastifyRequest): Authority {
  return { actor: actorOf(request), tenantId: null, userId: viewerOf(request).userId };
}

/** The one page that shows a link: it is in no URL, in no log, and cannot be opened again. */
function showLink(
  request: FastifyRequest,
  reply: FastifyReply,
  { publicUrl }: PortalContext,
  { made, wanted }: { made: MadeInvitation; wanted: Wanted },
): FastifyReply {
  const path = usersHref({ ...wanted, done: undefined });
  return sendPage(reply, {
    title: 'One-time link',
    viewer: viewerOf(request),
    active: 'operator/users',
    trail: [{ label: 'Users', href: path }],
    body: oneTimeLink(publicUrl, made, path),
  });
}
