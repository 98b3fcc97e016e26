import { Type } from 'typebox';
import {
  deleteNamedUser,
  listNamedUsers,
  type NamedUser,
  putUser,
} from '../../features/users/named-users.ts';
import { dateTime, named, namedClosed, nullable, parameter, text } from '../external/schema-kit.ts';
import { inTenant } from './in-tenant.ts';
import { platformOperation } from './platform-operation.ts';
import { EXTERNAL_ID, OF_TENANT, REFERENCE, TENANT_PATH } from './platform-schemas.ts';

const USERS_PATH = `${TENANT_PATH}/users` as const;
const USER_PATH = `${USERS_PATH}/:userRef` as const;

const OF_USER = Type.Object({
  externalId: EXTERNAL_ID,
  userRef: parameter(
    Type.String({ pattern: REFERENCE }),
    'Your own id of the user, unique in the tenant.',
    'u_17',
  ),
});

const ROLE = Type.Enum(['admin', 'member'], { examples: ['admin'] });

const USER_MEMBERS = {
  userRef: nullable(Type.String(), 'u_17'),
  userId: nullable(Type.String({ description: 'Null until the invitation is accepted.' }), '12'),
  email: text('asha@store.example'),
  role: ROLE,
  state: Type.Enum(['active', 'disabled', 'invited'], { examples: ['invited'] }),
  lastSignInAt: nullable(dateTime()),
  inviteEndsAt: nullable(dateTime(), '2026-11-28T09:30:00.000Z'),
};

const User = named('TenantUser', USER_MEMBERS);

const SavedUser = named('SavedTenantUser', {
  ...USER_MEMBERS,
  inviteUrl: nullable(
    Type.String({
      description: 'In the answer that made the invitation only, and null where it was sent by e-mail.',
    }),
    'https://gateway.example/portal/invitations/1f0a2b3c',
  ),
});

const listTenantUsers = platformOperation({
  id: 'listTenantUsers',
  method: 'GET',
  path: USERS_PATH,
  scope: 'users',
  summary: 'List the users of a tenant',
  description:
    'All users of the portal who belong to the tenant, and open invitations; also those that you have not named.',
  tag: 'Users',
  errors: ['unknown_tenant'],
  params: OF_TENANT,
  answers: {
    200: { schema: named('TenantUserList', { data: Type.Array(User) }), description: 'The users.' },
  },
  run: async (call, { externalId }): Promise<NamedUser[]> =>
    await inTenant(call, { externalId }, (tools, { userId }) => listNamedUsers(tools, userId)),
  json: (data) => ({ data }),
  example: 'list-tenant-users acme',
});

const putTenantUser = platformOperation({
  id: 'putTenantUser',
  method: 'PUT',
  path: USER_PATH,
  scope: 'users',
  summary: 'Invite a user of a tenant',
  description:
    'Makes an invitation to the portal (201): it is sent by e-mail, or, where the installation sends none, `inviteUrl` has its link, which is shown this once. Repeated: 200, and `inviteUrl` is null; another `role` replaces the present one. ' +
    'A member with this address whom you have not named gets the `userRef`. An invitation that is not accepted within 7 days ends; the same request makes another one.',
  tag: 'Users',
  errors: ['unknown_tenant', 'tenant_suspended', 'user_differs', 'user_exists', 'too_many_links'],
  requests: { 'an administrator': { email: 'asha@store.example', role: 'admin' } },
  params: OF_USER,
  body: namedClosed('TenantUserInput', { email: Type.String({ maxLength: 320 }), role: ROLE }),
  answers: {
    200: { schema: SavedUser, description: 'The user was known.', example: { inviteUrl: null } },
    201: { schema: SavedUser, description: 'The user was invited.' },
  },
  run: async (call, { externalId, userRef, email, role }) =>
    await inTenant(call, { externalId }, (tools, { userId }) =>
      putUser({ ...tools, mailer: call.mailer }, userId, userRef, { email, role }),
    ),
  status: ({ invitation }) => (invitation === null ? 200 : 201),
  json: ({ invitation, ...user }, { publicUrl }) => ({
    ...user,
    inviteUrl: invitation === null || invitation.isMailed ? null : `${publicUrl}${invitation.path}`,
  }),
  example: 'put-tenant-user acme u_17 --email asha@store.example --role admin',
});

const deleteTenantUser = platformOperation({
  id: 'deleteTenantUser',
  method: 'DELETE',
  path: USER_PATH,
  scope: 'users',
  summary: 'Remove a user of a tenant',
  description:
    'From the next request on, the sessions of the user in the tenant are over; an invitation that is open ends. A second time returns 404.',
  tag: 'Users',
  errors: ['unknown_tenant', 'unknown_user'],
  params: OF_USER,
  answers: { 200: { schema: User, description: 'The user as it was.' } },
  run: async (call, { externalId, userRef }) =>
    await inTenant(call, { externalId }, (tools, { userId }) =>
      deleteNamedUser({ ...tools, mailer: null }, userId, userRef),
    ),
  json: (user) => user,
  example: 'delete-tenant-user acme u_17',
});

export const USER_OPERATIONS = [listTenantUsers, putTenantUser, deleteTenantUser];
