import { Type } from 'typebox';
import { shownCount } from '../../engine/queue/waiting.ts';
import {
  type EndpointCommandOptions,
  givenEndpointOptions,
  withEndpointOptions,
} from '../../features/endpoints/commands/endpoint-options.ts';
import { deleteEndpoint } from '../../features/endpoints/endpoint-modes.ts';
import {
  addEndpoint,
  endpointStatus,
  endpointsOf,
  sameUrlNotice,
  updateEndpoint,
} from '../../features/endpoints/endpoints.ts';
import { alignedFields } from '../../platform/cli/admin-action.ts';
import { invalidValue } from '../../platform/request-input.ts';
import { PageQuery, readPage } from '../external/page.ts';
import { count, listOf, text } from '../external/schema-kit.ts';
import { urlFor } from '../keys/api-key-auth.ts';
import { operation } from '../operations/operation.ts';
import {
  ChangedEndpoint,
  CreatedEndpoint,
  ENDPOINTS_PATH,
  EndpointChange,
  EndpointWithWaiting,
  NewEndpoint,
  OF_ENDPOINT,
  wabaOfEndpoint,
} from './endpoint-schemas.ts';
import {
  appSecretRow,
  describeEndpoint,
  describeEndpoints,
  endpointJson,
  moveMembers,
  moveNotes,
} from './endpoint-text.ts';
import { enableWebhookEndpoint, pauseWebhookEndpoint } from './mode-operations.ts';

export const listWebhookEndpoints = operation({
  id: 'listWebhookEndpoints',
  method: 'GET',
  path: ENDPOINTS_PATH,
  scope: 'readWebhooks',
  summary: 'List webhook endpoints',
  description:
    'The oldest first, each with its pending deliveries. Secrets and values of headers are never shown. A key without `manage_webhooks` gets the origins of URLs and hashes of the rest.',
  tag: 'Webhook endpoints',
  query: PageQuery,
  answers: { 200: { description: 'A page of endpoints.', schema: listOf(EndpointWithWaiting) } },
  run: (call, input) =>
    readPage(call, input, {
      name: 'webhook-endpoints',
      find: ([afterId = '0'], limit) => endpointsOf(call.tools, call.wabaId, { afterId, ...limit }),
      position: ({ id }) => [id],
    }),
  json: ({ rows, ...page }, { request }) => ({
    data: rows.map((row) => endpointJson({ ...row, url: urlFor(request, row.url) })),
    ...page,
  }),
  command: {
    name: 'endpoint list',
    help: 'list the webhook endpoints of a WABA, or of all',
    example: 'endpoint list',
    waba: 'the WABA',
    show: ({ rows }, { call }) => describeEndpoints(rows, call.wabaId),
    showAll: (pages) => describeEndpoints(pages.flatMap(({ rows }) => rows)),
  },
});

export const getWebhookEndpoint = operation({
  id: 'getWebhookEndpoint',
  method: 'GET',
  path: `${ENDPOINTS_PATH}/:id`,
  scope: 'readWebhooks',
  summary: 'Get a webhook endpoint',
  description:
    'With its pending deliveries. A key without `manage_webhooks` gets the origin of the URL and a hash of the rest.',
  ...OF_ENDPOINT,
  answers: { 200: { description: 'The endpoint.', schema: EndpointWithWaiting } },
  run: ({ tools, wabaId }, { id }) => endpointStatus(tools, wabaId, id),
  json: (endpoint, { request }) => endpointJson({ ...endpoint, url: urlFor(request, endpoint.url) }),
  command: {
    name: 'endpoint show',
    help: 'show a webhook endpoint, its mode and its pending deliveries',
    example: 'endpoint show 3',
    waba: wabaOfEndpoint,
    show: (endpoint, { tools }) => describeEndpoint(tools.config, endpoint),
  },
});

export const createWebhookEndpoint = operation({
  id: 'createWebhookEndpoint',
  method: 'POST',
  path: ENDPOINTS_PATH,
  scope: 'manageWebhooks',
  summary: 'Add a webhook endpoint',
  description:
    'Up to 100 in a WABA. `secret` is in this answer only. `sameUrlEndpointIds` names other endpoints with the same ' +
    'URL, which then receives each event once for each of them.',
  tag: 'Webhook endpoints',
  errors: [
    'invalid_url',
    'unknown_phone_number',
    'url_is_webhook_endpoint',
    'url_not_verified',
    'too_many_endpoints',
    'buffer_needs_conversation_order',
  ],
  requests: {
    'everything by default': { url: 'https://shop.example/hook' },
    'some events, custom header': {
      url: 'https://shop.example/hook',
      description: 'shop server',
      eventTypes: ['message', 'status'],
      customHeaders: { 'X-Token': 'a value of yours' },
    },
    'a bot, messages together': {
      url: 'https://bot.example/hook',
      eventTypes: ['message'],
      orderScope: 'conversation',
      bufferSeconds: 5,
    },
    'as a Meta app': {
      url: 'https://chat.example/webhooks/whatsapp/+12025550143',
      format: 'meta',
      appSecret: 'the app secret that the software knows',
      verifyToken: 'the token that the software expects',
    },
  },
  body: NewEndpoint,
  answers: {
    201: {
      description: 'The endpoint; events that come from now on are sent to it.',
      schema: CreatedEndpoint,
      headers: ['Location'],
    },
  },
  run: ({ tools, wabaId }, options) => addEndpoint(tools, wabaId, options),
  location: ({ id }) => `${ENDPOINTS_PATH}/${id}`,
  json: endpointJson,
  command: {
    name: 'endpoint add',
    help: 'add a webhook endpoint; prints the secret that verifies its signatures',
    example: 'endpoint add --waba 900000000000101 --url https://shop.example/webhooks --json',
    waba: 'the WABA whose events it receives',
    options: {
      url: {
        flags: '--url <url>',
        help: 'where they are sent, https:// unless the settings allow http',
        isRequired: true,
      },
    },
    extend: withEndpointOptions,
    read: (options) => givenEndpointOptions(options as EndpointCommandOptions),
    show: (endpoint) => {
      const notice = sameUrlNotice(endpoint);
      return {
        json: endpoint,
        notes: notice === null ? [] : [notice],
        text: alignedFields([
          ['id', endpoint.id],
          ['secret', endpoint.secret],
          ...appSecretRow(endpoint),
          ['URL', endpoint.url],
          ['WABA', endpoint.wabaId],
          ['events', endpoint.eventTypes ?? 'all'],
        ]),
      };
    },
  },
});

export const updateWebhookEndpoint = operation({
  id: 'updateWebhookEndpoint',
  method: 'PATCH',
  path: `${ENDPOINTS_PATH}/:id`,
  scope: 'manageWebhooks',
  summary: 'Change a webhook endpoint',
  description:
    'Changes the members that are given; null goes back to the default. When scheme, host or port of `url` change, ' +
    '`customHeaders` that are not given in the same request are forgotten, because their values were meant for the ' +
    'previous server: `droppedHeaderNames` names them. `secretRotationAdvised` is then true: the previous server still ' +
    'knows the signing secret. `sameUrlEndpointIds` names other endpoints with the same URL. `orderScope` changes only while ' +
    'no delivery is pending.',
  errors: [
    'invalid_url',
    'unknown_phone_number',
    'url_is_webhook_endpoint',
    'url_not_verified',
    'deliveries_pending',
    'buffer_needs_conversation_order',
  ],
  requests: { url: { url: 'https://shop.example/hook' }, 'all events': { eventTypes: null } },
  ...OF_ENDPOINT,
  body: EndpointChange,
  answers: { 200: { description: 'The endpoint after the change.', schema: ChangedEndpoint } },
  run: async ({ tools, wabaId }, { id, ...options }) => {
    const move = await updateEndpoint(tools, wabaId, id, options);
    return { move, endpoint: await endpointStatus(tools, wabaId, id) };
  },
  json: ({ move, endpoint }) => ({ ...endpointJson(endpoint), ...moveMembers(move) }),
  command: {
    name: 'endpoint update',
    help: 'change the given settings of a webhook endpoint; "default" as a value goes back to the default',
    example: 'endpoint update 3 --events message,status --timeout-ms 5000',
    waba: wabaOfEndpoint,
    options: {
      url: {
        flags: '--url <url>',
        help: 'where its webhooks are sent, pending deliveries included; custom headers go to another host only if given again',
      },
    },
    extend: (command) =>
      withEndpointOptions(command)
        .option('--remove-header <name...>', 'remove these custom headers')
        .option('--clear-headers', 'remove all custom headers'),
    read: readChange,
    show: ({ move, endpoint }, { tools, input }) => {
      const sameUrl = input.url === undefined ? null : sameUrlNotice(move);
      const described = describeEndpoint(tools.config, endpoint, [
        ...moveNotes(endpoint.id, move),
        ...(sameUrl === null ? [] : [sameUrl]),
        ...appSecretRow(move).map(([name, secret]) => `${name}, shown this once: ${secret}`),
      ]);
      return { ...described, json: { ...described.json, ...moveMembers(move) } };
    },
  },
});

type ChangeOptions = EndpointCommandOptions & { url?: string; removeHeader?: string[]; clearHeaders?: true };

async function readChange(options: ChangeOptions) {
  const { url, removeHeader = [], clearHeaders } = options;
  const { customHeaders, ...given } = await givenEndpointOptions(options);
  const headers = { ...Object.fromEntries(removeHeader.map((name) => [name, null])), ...customHeaders };
  const namesHeaders = Object.keys(headers).length > 0;
  if (clearHeaders && namesHeaders) throw invalidValue('--clear-headers goes with no other header option.');
  const change = {
    ...given,
    ...(namesHeaders && { customHeaders: headers }),
    ...(clearHeaders && { customHeaders: null }),
  };
  if (url === undefined && Object.keys(change).length === 0) {
    throw invalidValue('Name a setting to change; see --help.');
  }
  return change;
}

export const deleteWebhookEndpoint = operation({
  id: 'deleteWebhookEndpoint',
  method: 'DELETE',
  path: `${ENDPOINTS_PATH}/:id`,
  scope: 'manageWebhooks',
  summary: 'Delete a webhook endpoint',
  description: 'Its pending deliveries are dropped; the log stays.',
  ...OF_ENDPOINT,
  answers: {
    200: {
      description: 'How many were dropped.',
      schema: Type.Object({ id: text('3'), deleted: Type.Literal(true), dropped: count(2) }),
    },
  },
  run: ({ tools, wabaId }, { id }) => deleteEndpoint(tools, wabaId, id),
  json: ({ id, dropped }) => ({ id, deleted: true as const, dropped }),
  command: {
    name: 'endpoint delete',
    help: 'delete a webhook endpoint and drop its pending deliveries; the log of its deliveries stays',
    example: 'endpoint delete 3 --yes',
    waba: wabaOfEndpoint,
    confirmDeletion: async ({ tools, wabaId }, { id }) => {
      const { url, waiting } = await endpointStatus(tools, wabaId, id);
      return `Endpoint ${id} (${url}) would be deleted with ${shownCount(waiting)} pending deliveries`;
    },
    show: (deleted) => {
      const dropped = deleted.dropped.toLocaleString('en-US');
      const text = `Endpoint ${deleted.id} is deleted; ${dropped} pending deliveries were dropped.`;
      return { json: deleted, text };
    },
  },
});

export const ENDPOINT_OPERATIONS = [
  listWebhookEndpoints,
  createWebhookEndpoint,
  getWebhookEndpoint,
  updateWebhookEndpoint,
  deleteWebhookEndpoint,
  pauseWebhookEndpoint,
  enableWebhookEndpoint,
];
