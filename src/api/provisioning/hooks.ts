import { Type } from 'typebox';
import { listHooks, type StoredHook } from '../../ops/feed/hook-store.ts';
import { deleteHook, knownHook, putHook, rotateHookSecret, testHook } from '../../ops/feed/hooks.ts';
import { shownUrl } from '../../platform/http/outbound-url.ts';
import { EXAMPLE_SECRET } from '../endpoints/endpoint-schemas.ts';
import { dateTime, named, namedClosed, nullable, parameter, text } from '../external/schema-kit.ts';
import { platformOperation } from './platform-operation.ts';
import { REFERENCE } from './platform-schemas.ts';

const HOOKS_PATH = '/api/platform/operations-hooks';
const HOOK_PATH = `${HOOKS_PATH}/:hookRef` as const;

const OF_HOOK = Type.Object({
  hookRef: parameter(Type.String({ pattern: REFERENCE }), 'Your own name of the hook.', 'crm'),
});

const STATE = Type.Enum(['enabled', 'disabled'], { examples: ['enabled'] });

const HOOK_MEMBERS = {
  hookRef: text('crm'),
  url: Type.String({
    description: 'Its server; a hash stands for the rest, which may be secret.',
    examples: ['https://crm.example/***1f0a2b'],
  }),
  types: Type.Array(Type.String(), { examples: [['tenant.*', 'alert.opened']] }),
  description: text('the CRM'),
  state: STATE,
  disabledReason: nullable(Type.String({ description: 'Why it was disabled by itself.' })),
  sequence: Type.Integer({
    description: 'Every event up to this one was delivered or is of another type.',
    examples: [4711],
  }),
  isTestPending: Type.Boolean({ examples: [false] }),
  failingSince: nullable(dateTime()),
  nextAttemptAt: nullable(dateTime()),
  lastError: nullable(Type.String(), 'the endpoint returned 503'),
  lastErrorAt: nullable(dateTime(), '2026-11-20T10:00:00.000Z'),
  lastSuccessAt: nullable(dateTime(), '2026-11-21T09:30:00.000Z'),
  previousSecretEndsAt: nullable(dateTime()),
  createdAt: dateTime('2026-11-01T08:00:00.000Z'),
};

const Hook = named('OperationsHook', HOOK_MEMBERS);

const SECRET = nullable(
  Type.String({ description: 'In the answer that made it only; null otherwise.' }),
  EXAMPLE_SECRET,
);

const SavedHook = named('SavedOperationsHook', { ...HOOK_MEMBERS, secret: SECRET });

function hookJson({ ref, url, position, isEnabled, ...hook }: StoredHook) {
  const state = isEnabled ? ('enabled' as const) : ('disabled' as const);
  return { hookRef: ref, url: shownUrl(url), state, sequence: Number(position), ...hook };
}

const listOperationsHooks = platformOperation({
  id: 'listOperationsHooks',
  method: 'GET',
  path: HOOKS_PATH,
  scope: 'read',
  summary: 'List the hooks of operation events',
  description: 'All of them, with how far each has received the events, and the last error.',
  tag: 'Service',
  answers: {
    200: { schema: named('OperationsHookList', { data: Type.Array(Hook) }), description: 'The hooks.' },
  },
  run: async ({ tools: { database } }) => await listHooks(database),
  json: (hooks) => ({ data: hooks.map(hookJson) }),
  example: 'list-operations-hooks',
});

const getOperationsHook = platformOperation({
  id: 'getOperationsHook',
  method: 'GET',
  path: HOOK_PATH,
  scope: 'read',
  summary: 'Get a hook of operation events',
  description: 'How far it has received the events, and the last error.',
  tag: 'Service',
  errors: ['unknown_operations_hook'],
  params: OF_HOOK,
  answers: { 200: { schema: Hook, description: 'The hook.' } },
  run: async ({ tools: { database } }, { hookRef }) => await knownHook(database, hookRef),
  json: hookJson,
  example: 'get-operations-hook crm',
});

const putOperationsHook = platformOperation({
  id: 'putOperationsHook',
  method: 'PUT',
  path: HOOK_PATH,
  scope: 'endpoints',
  summary: 'Have operation events sent to a URL',
  description:
    'Adds a hook (201) with `secret`, which is shown this once; it gets the events from now on. Repeated: 200, `secret` is null, and what is left out stays. ' +
    'Each event is a POST, signed by Standard Webhooks, with the event as `GET /api/platform/operation-events` has it; its `webhook-id` is the id of the event, the same at every attempt. ' +
    'The events of each tenant come in the order of the feed: one that is not accepted with a 2xx is sent again after 5 seconds, later after up to 30 minutes, and those of its tenant behind it wait. ' +
    'A hook that accepts nothing for 3 days, or returns 410, is disabled; with `state` `enabled` it continues where it stopped.',
  tag: 'Service',
  errors: ['invalid_url', 'url_is_webhook_endpoint', 'too_many_operations_hooks'],
  requests: { 'a hook': { url: 'https://crm.example/operations', types: ['tenant.*', 'alert.opened'] } },
  params: OF_HOOK,
  body: namedClosed('OperationsHookInput', {
    url: Type.String({ maxLength: 2_048 }),
    types: Type.Optional(
      Type.Array(Type.String({ maxLength: 100 }), {
        minItems: 1,
        maxItems: 50,
        description: 'Types of events; `tenant.*` is all that begin with `tenant.`, `*` is all.',
      }),
    ),
    description: Type.Optional(Type.String({ maxLength: 200 })),
    state: Type.Optional(STATE),
  }),
  answers: {
    200: { schema: SavedHook, description: 'The hook was known.', example: { secret: null } },
    201: { schema: SavedHook, description: 'The hook was added.' },
  },
  run: async ({ tools }, { hookRef, state, ...given }) =>
    await putHook(tools, hookRef, { ...given, ...(state && { isEnabled: state === 'enabled' }) }),
  status: ({ secret }) => (secret === null ? 200 : 201),
  json: ({ secret, ...hook }) => ({ ...hookJson(hook), secret }),
  example: 'put-operations-hook crm --url https://crm.example/operations',
});

const deleteOperationsHook = platformOperation({
  id: 'deleteOperationsHook',
  method: 'DELETE',
  path: HOOK_PATH,
  scope: 'endpoints',
  summary: 'Delete a hook of operation events',
  description: 'Nothing more is sent to it. The feed keeps the events. A second time returns 404.',
  tag: 'Service',
  errors: ['unknown_operations_hook'],
  params: OF_HOOK,
  answers: {
    200: {
      schema: named('DeletedOperationsHook', { hookRef: text('crm') }),
      description: 'The hook is deleted.',
    },
  },
  run: async ({ tools }, { hookRef }) => {
    await deleteHook(tools, hookRef);
    return { hookRef };
  },
  json: (deleted) => deleted,
  example: 'delete-operations-hook crm',
});

const rotateOperationsHookSecret = platformOperation({
  id: 'rotateOperationsHookSecret',
  method: 'POST',
  path: `${HOOK_PATH}/rotate-secret`,
  scope: 'endpoints',
  summary: 'Replace the secret of a hook of operation events',
  description:
    '`secret` is shown this once. For `overlapHours`, requests carry the signatures of both secrets. Repeated, it makes a further secret.',
  tag: 'Service',
  errors: ['unknown_operations_hook'],
  requests: { 'with a day to change over': { overlapHours: 24 } },
  params: OF_HOOK,
  body: namedClosed('OperationsHookRotation', { overlapHours: Type.Integer({ minimum: 0, maximum: 168 }) }),
  answers: {
    200: {
      schema: named('RotatedOperationsHookSecret', {
        hookRef: text('crm'),
        secret: text(EXAMPLE_SECRET),
        previousSecretEndsAt: nullable(dateTime(), '2026-11-21T09:30:00.000Z'),
      }),
      description: 'The new secret.',
    },
  },
  run: async ({ tools }, { hookRef, overlapHours }) => await rotateHookSecret(tools, hookRef, overlapHours),
  json: ({ ref, ...rotated }) => ({ hookRef: ref, ...rotated }),
  example: 'rotate-operations-hook-secret crm --overlap-hours 24',
});

const testOperationsHook = platformOperation({
  id: 'testOperationsHook',
  method: 'POST',
  path: `${HOOK_PATH}/test`,
  scope: 'endpoints',
  summary: 'Send a test event to a hook of operation events',
  description:
    'Has one event of the type `hook.test` sent within seconds, also to a hook that is disabled. It is attempted once; `lastSuccessAt` or `lastError` of the hook tells how it went.',
  tag: 'Service',
  errors: ['unknown_operations_hook'],
  params: OF_HOOK,
  answers: { 202: { schema: Hook, description: 'The test event waits to be sent.' } },
  run: async ({ tools }, { hookRef }) => {
    await testHook(tools, hookRef);
    return await knownHook(tools.database, hookRef);
  },
  json: hookJson,
  example: 'test-operations-hook crm',
});

export const HOOK_OPERATIONS = [
  listOperationsHooks,
  getOperationsHook,
  putOperationsHook,
  deleteOperationsHook,
  rotateOperationsHookSecret,
  testOperationsHook,
];
