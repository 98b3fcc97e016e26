import { Type } from 'typebox';
import { SUSPENDED } from '../../features/accounts/suspension.ts';
import { CAPABILITIES, LINK_PAGES } from '../../features/users/portal-link-store.ts';
import { createPortalLink, endPortalLinks } from '../../features/users/portal-links.ts';
import { PORTAL_SESSION_ID, publicSessionId } from '../../platform/public-ids.ts';
import { RequestError } from '../../platform/request-input.ts';
import {
  closed,
  count,
  dateTime,
  named,
  namedClosed,
  optionalParameter,
  text,
} from '../external/schema-kit.ts';
import { inTenant, requireWaba } from './in-tenant.ts';
import { platformOperation } from './platform-operation.ts';
import { OF_TENANT, REFERENCE, TENANT_PATH, WABA_ID } from './platform-schemas.ts';

const PATH = `${TENANT_PATH}/portal-sessions` as const;

const MAX_WABAS = 1_000;

const Address = Type.String({ maxLength: 2_048 });

const LinkInput = namedClosed('PortalSessionInput', {
  user: closed({
    externalId: Type.String({ pattern: REFERENCE }),
    email: Type.String({ maxLength: 254 }),
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    mfa: Type.Optional(Type.Boolean()),
  }),
  role: Type.Enum(['admin', 'member']),
  capabilities: Type.Optional(
    Type.Array(Type.Enum([...CAPABILITIES]), { maxItems: CAPABILITIES.length, uniqueItems: true }),
  ),
  wabaIds: Type.Optional(Type.Array(WABA_ID, { minItems: 1, maxItems: MAX_WABAS, uniqueItems: true })),
  page: Type.Optional(Type.Enum([...LINK_PAGES])),
  sessionSeconds: Type.Optional(Type.Integer({ minimum: 900, maximum: 43_200 })),
  returnUrl: Type.Optional(Address),
  refreshUrl: Type.Optional(Address),
  embed: Type.Optional(closed({ origin: Address })),
});

const HOUR_SECONDS = 3_600;

const createPortalSession = platformOperation({
  id: 'createPortalSession',
  method: 'POST',
  path: PATH,
  scope: 'portal_sessions',
  summary: 'Make a link that opens the portal of a tenant',
  description:
    'The link works once, within five minutes; opening it shows a page with a button, and only the button uses it up. Make one for each visit. ' +
    'The session is in this tenant alone, or in those of its WABAs that `wabaIds` names: the others are then not to be seen. With several WABAs, the person chooses one, and comes to `page`. ' +
    'It ends after `sessionSeconds` (an hour unless given) or 30 minutes without use, and may do what `capabilities` names; ' +
    'left out: all that the role may do, without `view_conversations`. `view` is always included. `mfa` says that the person gave you a second factor. ' +
    '`returnUrl` and `refreshUrl` must be at an origin of `HELIOGRAPH_PORTAL_PRODUCT_ORIGINS`: a page whose link or session is over leads to `refreshUrl`. ' +
    'With `embed`, the link is for a frame on a page of that origin, and opens nowhere else.',
  tag: 'Portal',
  errors: ['unknown_tenant', 'unknown_waba', 'tenant_suspended', 'url_not_allowed'],
  requests: {
    'a visit': {
      user: { externalId: 'u_17', email: 'asha@store.example', name: 'Asha', mfa: true },
      role: 'admin',
      capabilities: ['view', 'manage_endpoints', 'retry'],
      wabaIds: ['900000000000101'],
      page: 'endpoints',
      refreshUrl: 'https://crm.example/heliograph',
    },
  },
  params: OF_TENANT,
  body: LinkInput,
  answers: {
    201: {
      schema: named('PortalSession', {
        id: text('ps_4711'),
        url: text('https://gateway.example/portal/enter/kJ8Q3vXw2m7Yt1bLr5Zc9dNf4gHs6aPe0uKiOyTqWxE'),
        linkExpiresAt: dateTime('2026-11-20T10:05:00.000Z'),
        sessionSeconds: count(3_600),
      }),
      description: 'The link. It is in this answer and nowhere else.',
    },
  },
  run: async (call, { externalId, page = 'overview', sessionSeconds = HOUR_SECONDS, ...given }) => {
    const { portal, key, publicUrl } = call;
    return await inTenant(call, { externalId }, async (tools, tenant) => {
      for (const wabaId of given.wabaIds ?? []) requireWaba(tenant, wabaId);
      const { userId, state } = tenant;
      if (state === 'suspended') throw new RequestError('tenant_suspended', SUSPENDED);
      const rules = {
        productOrigins: portal.productOrigins,
        needsSecondFactor: portal.secondFactor === 'all',
        platformKeyId: key?.id ?? null,
      };
      const wanted = { ...given, page, sessionSeconds };
      const { id, token, linkExpiresAt } = await createPortalLink(tools, userId, wanted, rules);
      const url = `${publicUrl}/portal/enter/${token}`;
      return { id: publicSessionId(id), url, linkExpiresAt, sessionSeconds };
    });
  },
  status: () => 201,
  json: (link) => link,
  example:
    'create-portal-session acme --user \'{"externalId":"u_17","email":"asha@store.example"}\' --role admin',
});

const endPortalSessions = platformOperation({
  id: 'endPortalSessions',
  method: 'DELETE',
  path: PATH,
  scope: 'portal_sessions',
  summary: 'End portal sessions of a tenant',
  description:
    'Ends the links of the tenant and the sessions that they began, from the next request on: all of them, those of a `user`, or the one with this `id`. ' +
    'Suspending the tenant and revoking the platform key end them too.',
  tag: 'Portal',
  errors: ['unknown_tenant'],
  params: OF_TENANT,
  query: closed({
    user: optionalParameter(Type.String({ pattern: REFERENCE }), 'Your own id of the person.', 'u_17'),
    id: optionalParameter(
      Type.String({ pattern: PORTAL_SESSION_ID.source }),
      'The id of one link and its session.',
      'ps_4711',
    ),
  }),
  answers: {
    200: {
      schema: named('EndedPortalSessions', { ended: count(2) }),
      description: 'How many links and sessions ended.',
    },
  },
  run: async (call, { externalId, ...which }) =>
    await inTenant(call, { externalId }, async (tools, { userId }) => ({
      ended: await endPortalLinks(tools, userId, which),
    })),
  json: (ended) => ended,
  example: 'end-portal-sessions acme --user u_17',
});

export const PORTAL_SESSION_OPERATIONS = [createPortalSession, endPortalSessions];
