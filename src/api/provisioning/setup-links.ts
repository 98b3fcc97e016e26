import { Type } from 'typebox';
import { externalTenant } from '../../features/accounts/external-tenants.ts';
import {
  broughtWaba,
  FAILURE_CODES,
  listSetupLinks,
  SETUP_CONNECTIONS,
  SETUP_MODES,
  SETUP_STATES,
  type SetupLink,
} from '../../features/setup-links/setup-link-store.ts';
import { createSetupLink, revokeSetupLink, setupLinkOf } from '../../features/setup-links/setup-links.ts';
import { publicSetupId, SETUP_LINK_ID } from '../../platform/public-ids.ts';
import { PAGE_PARAMETERS, readPage } from '../external/page.ts';
import {
  closed,
  dateTime,
  listOf,
  named,
  namedClosed,
  nullable,
  optionalParameter,
  parameter,
  text,
} from '../external/schema-kit.ts';
import { inTenant } from './in-tenant.ts';
import { platformOperation } from './platform-operation.ts';
import { EXTERNAL_ID, OF_TENANT, TENANT_PATH } from './platform-schemas.ts';

const LINKS_PATH = `${TENANT_PATH}/setup-links` as const;
const LINK_PATH = `${LINKS_PATH}/:setupLinkId` as const;

const OF_LINK = Type.Object({
  externalId: EXTERNAL_ID,
  setupLinkId: parameter(Type.String({ pattern: SETUP_LINK_ID.source }), 'The id of the link.', 'sl_17'),
});

const Address = Type.String({ maxLength: 2_048, examples: ['https://crm.example/whatsapp'] });

const Mode = Type.Enum([...SETUP_MODES], {
  description:
    '`signup`: the customer consents in upstream’s dialog; `steps`: enters the id of the WABA and an access token.',
  examples: ['signup'],
});

const Connections = Type.Array(Type.Enum([...SETUP_CONNECTIONS]), {
  minItems: 1,
  maxItems: SETUP_CONNECTIONS.length,
  uniqueItems: true,
  description:
    '`cloud`: the number is registered for the API; `coexistence`: it stays in the WhatsApp Business app too.',
  examples: [['cloud', 'coexistence']],
});

const State = Type.Enum([...SETUP_STATES], { examples: ['open'] });

const LinkInput = namedClosed('SetupLinkInput', {
  successUrl: Address,
  failureUrl: Address,
  mode: Type.Optional(Mode),
  connections: Type.Optional(Connections),
  reconnectPhoneNumberId: Type.Optional(Type.String({ pattern: '^[0-9]{1,64}$' })),
  expiresInHours: Type.Optional(Type.Integer({ minimum: 1, maximum: 720 })),
  state: Type.Optional(
    Type.String({ maxLength: 255, description: 'Anything: it comes back with the customer, in `state`.' }),
  ),
});

const Failure = named('SetupFailure', {
  step: Type.String({
    description: 'A step of ours, or the step of the dialog at which the customer left it.',
    examples: ['register'],
  }),
  code: Type.Enum([...FAILURE_CODES], { examples: ['pin_required'] }),
  retryable: Type.Boolean({
    description: 'The link goes on from there, or from its beginning, when the customer tries again.',
    examples: [true],
  }),
  message: text('Two-step verification is on for the number: enter its PIN.'),
  upstreamCode: nullable(Type.Integer(), 133_005),
  retryAt: nullable(Type.String({ format: 'date-time', description: 'Trying again earlier is in vain.' })),
});

const LINK_MEMBERS = {
  id: text('sl_17'),
  state: State,
  mode: Mode,
  connections: Connections,
  reconnectPhoneNumberId: nullable(Type.String()),
  failure: nullable(Failure),
  attention: Type.Array(Type.Enum(['number_in_review', 'no_endpoint']), {
    description: 'What is not as it should be although the number is connected.',
    examples: [['number_in_review']],
  }),
  wabaId: nullable(Type.String(), '900000000000101'),
  phoneNumberId: nullable(Type.String(), '800000000000111'),
  createdAt: dateTime('2026-11-20T10:00:00.000Z'),
  changedAt: dateTime('2026-11-20T10:04:00.000Z'),
  expiresAt: dateTime('2026-11-27T10:00:00.000Z'),
};

const Link = named('SetupLink', LINK_MEMBERS);

function linkJson(link: SetupLink) {
  const { id, state, mode, connections, reconnectPhoneNumberId, failure, attention } = link;
  const { phoneNumberId, createdAt, changedAt, expiresAt } = link;
  const told = {
    id: publicSetupId(id),
    state,
    mode,
    connections,
    reconnectPhoneNumberId,
    failure,
    attention,
  };
  return { ...told, wabaId: broughtWaba(link), phoneNumberId, createdAt, changedAt, expiresAt };
}

const WEEK_HOURS = 168;

const NewLink = named('NewSetupLink', {
  ...LINK_MEMBERS,
  url: text('https://gateway.example/setup/open/kJ8Q3vXw2m7Yt1bLr5Zc9dNf4gHs6aPe0uKiOyTqWxE'),
});

const createLink = platformOperation({
  id: 'createSetupLink',
  method: 'POST',
  path: LINKS_PATH,
  scope: 'setup_links',
  summary: 'Make a link by which a customer connects a number',
  description:
    'On its page the customer consents in the dialog of upstream and picks a number; the rest, from subscribing the app to registering the number, is done and repeated by the service. ' +
    'The link works in one browser from then on. `successUrl` and `failureUrl` must be at an origin of `HELIOGRAPH_PORTAL_PRODUCT_ORIGINS`; the customer is led there with `setupLink`, `status`, `wabaId`, `phoneNumberId`, `code` and `state`. ' +
    'That is a convenience: what happened, `setup_link.done` of the operation events and GET of the link tell. ' +
    'A link expires after `expiresInHours` (168 unless given). A tenant has five open links at most. ' +
    'Without an app in the settings, `signup` returns 409 `signup_not_configured`, and `steps` makes a link all the same.',
  tag: 'Set-up links',
  idempotent: true,
  errors: [
    'idempotency_key_reused',
    'unknown_tenant',
    'tenant_suspended',
    'url_not_allowed',
    'unknown_phone_number',
    'signup_not_configured',
    'too_many_setup_links',
  ],
  requests: {
    'a number': {
      successUrl: 'https://crm.example/whatsapp/connected',
      failureUrl: 'https://crm.example/whatsapp',
      state: 'visit-42',
    },
    'by an access token': {
      successUrl: 'https://crm.example/whatsapp/connected',
      failureUrl: 'https://crm.example/whatsapp',
      mode: 'steps',
    },
  },
  params: OF_TENANT,
  body: LinkInput,
  answers: {
    200: { schema: NewLink, description: 'The link that an equal request with this Idempotency-Key made.' },
    201: {
      schema: NewLink,
      description:
        'The link. Its `url` is stored nowhere; a repetition with the same Idempotency-Key gets it again.',
    },
  },
  run: async (call, { externalId, successUrl, failureUrl, ...given }) => {
    const { portal, hasSignup, publicUrl } = call;
    return await inTenant(call, { externalId }, async (tools, tenant) => {
      const wanted = {
        successUrl,
        failureUrl,
        mode: given.mode ?? 'signup',
        connections: given.connections ?? [...SETUP_CONNECTIONS],
        reconnectPhoneNumberId: given.reconnectPhoneNumberId ?? null,
        clientState: given.state ?? null,
        expiresInHours: given.expiresInHours ?? WEEK_HOURS,
      };
      const rules = { productOrigins: portal.productOrigins, hasSignup };
      const { link, token, made } = await createSetupLink(tools, tenant, wanted, rules, call.idempotencyKey);
      return { made, link: { ...linkJson(link), url: `${publicUrl}/setup/open/${token}` } };
    });
  },
  status: ({ made }) => (made ? 201 : 200),
  json: ({ link }) => link,
  example:
    'create-setup-link acme --success-url https://crm.example/done --failure-url https://crm.example/failed',
});

const MAX_LISTED = 100;

const listLinks = platformOperation({
  id: 'listSetupLinks',
  method: 'GET',
  path: LINKS_PATH,
  scope: 'read',
  summary: 'List the set-up links of a tenant',
  description: 'The newest first. Links that have ended are kept for 30 days after their time.',
  tag: 'Set-up links',
  errors: ['unknown_tenant'],
  params: OF_TENANT,
  query: closed({
    ...PAGE_PARAMETERS,
    state: optionalParameter(State, 'Only those in this state.', 'failed'),
  }),
  answers: { 200: { schema: listOf(Link), description: 'A page of links.' } },
  run: async ({ tools: { database }, cursors }, { externalId, state = null, ...page }) => {
    const { userId } = await externalTenant(database, externalId);
    return await readPage({ cursors, wabaId: 'platform' }, page, {
      name: JSON.stringify(['set-up links', userId, state]),
      find: ([beforeId = null], { limit = MAX_LISTED }) =>
        listSetupLinks(database, { tenantId: userId, beforeId, limit, state }),
      position: ({ id }) => [id],
    });
  },
  json: ({ rows, ...page }) => ({ data: rows.map(linkJson), ...page }),
  example: 'list-setup-links acme --state failed',
});

const getLink = platformOperation({
  id: 'getSetupLink',
  method: 'GET',
  path: LINK_PATH,
  scope: 'read',
  summary: 'Get a set-up link',
  description: 'How far the customer is, or why it failed. The link itself is not shown again.',
  tag: 'Set-up links',
  errors: ['unknown_tenant', 'unknown_setup_link'],
  params: OF_LINK,
  answers: { 200: { schema: Link, description: 'The link.' } },
  run: async ({ tools: { database } }, { externalId, setupLinkId }) => {
    const { userId } = await externalTenant(database, externalId);
    return await setupLinkOf(database, userId, setupLinkId);
  },
  json: linkJson,
  example: 'get-setup-link acme sl_17',
});

const revokeLink = platformOperation({
  id: 'revokeSetupLink',
  method: 'DELETE',
  path: LINK_PATH,
  scope: 'setup_links',
  summary: 'Revoke a set-up link',
  description:
    'Its page does nothing any more, and its workflow is cancelled. What it has done stays: a WABA that was added is the tenant’s. A link that has ended stays as it is.',
  tag: 'Set-up links',
  errors: ['unknown_tenant', 'unknown_setup_link'],
  params: OF_LINK,
  answers: { 200: { schema: Link, description: 'The link, as it is now.' } },
  run: async (call, { externalId, setupLinkId }) =>
    await inTenant(call, { externalId }, (tools, { userId }) => revokeSetupLink(tools, userId, setupLinkId)),
  json: linkJson,
  example: 'revoke-setup-link acme sl_17',
});

export const SETUP_LINK_OPERATIONS = [createLink, listLinks, getLink, revokeLink];
