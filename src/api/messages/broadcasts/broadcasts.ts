import type { Command } from 'commander';
import {
  type BroadcastView,
  broadcastOf,
  broadcastsOf,
  changeBroadcast,
  createBroadcast,
  wabaOfBroadcast,
} from '../../../features/messages/broadcasts/broadcasts.ts';
import { PageQuery, readPage } from '../../external/page.ts';
import { listOf } from '../../external/schema-kit.ts';
import { accountOf } from '../../keys/api-key-auth.ts';
import { operation, restOperation } from '../../operations/operation.ts';
import { commandGroup, operationCommand } from '../../operations/operation-command.ts';
import {
  Broadcast,
  BroadcastDetails,
  broadcastDetailsJson,
  broadcastJson,
  NEW_BROADCAST,
  NewBroadcast,
  OF_BROADCAST,
} from './broadcast-schemas.ts';
import { describeBroadcast, describeBroadcasts } from './broadcast-text.ts';
import { RECIPIENT_OPERATIONS } from './recipients.ts';

const TAG = 'Broadcasts';

const create = restOperation({
  id: 'createBroadcast',
  method: 'POST',
  path: '/api/external/broadcasts',
  scope: 'send',
  summary: 'Create a broadcast',
  description:
    'A draft of one template to many customers. Add its recipients, then start it. A key with limits on its messages cannot create or start one.',
  tag: TAG,
  errors: ['unknown_phone_number', 'too_many_broadcasts', 'template_paused', 'template_disabled'],
  requests: {
    now: NEW_BROADCAST,
    'at a later time': { ...NEW_BROADCAST, sendAt: '2026-12-01T09:00:00+01:00' },
  },
  body: NewBroadcast,
  answers: {
    201: {
      description: 'The draft.',
      schema: BroadcastDetails,
      headers: ['Location'],
      example: { state: 'draft' },
    },
  },
  run: async ({ tools, wabaId, by, request, reply }, given) => {
    const limits = accountOf(request);
    const made = await createBroadcast(tools, wabaId, given, { requestedBy: by.name, limits });
    reply.header('location', `/api/external/broadcasts/${made.id}`);
    return broadcastDetailsJson(made);
  },
});

const start = restOperation({
  id: 'startBroadcast',
  method: 'POST',
  path: '/api/external/broadcasts/:id/start',
  scope: 'send',
  summary: 'Start a broadcast',
  description:
    'From here on it cannot be changed. Each recipient gets one message. Broadcasts and scheduled messages of a number together take at most 70 % of its pace. It pauses itself when upstream stops the number (131048), the country (130497) or the template (132015), when the account is restricted, when the access token is refused, and when more than 40 of its last 200 messages failed; an alert says why. At most 5 run or are paused.',
  ...OF_BROADCAST,
  errors: ['broadcast_started', 'broadcast_finished', 'broadcast_empty', 'too_many_broadcasts'],
  answers: {
    200: { description: 'The broadcast.', schema: BroadcastDetails, example: { state: 'running' } },
  },
  run: async ({ tools, wabaId, request }, { id }) => {
    const ids = { wabaId, broadcastId: id };
    return broadcastDetailsJson(await changeBroadcast(tools, ids, 'start', accountOf(request)));
  },
});

const list = operation({
  id: 'listBroadcasts',
  method: 'GET',
  path: '/api/external/broadcasts',
  scope: 'read',
  summary: 'List broadcasts',
  description: 'The newest first.',
  tag: TAG,
  query: PageQuery,
  answers: { 200: { description: 'A page of broadcasts.', schema: listOf(Broadcast) } },
  run: (call, input) =>
    readPage(call, input, {
      name: 'broadcasts',
      find: ([beforeId = null], limit) => broadcastsOf(call.tools, call.wabaId, { beforeId, ...limit }),
      position: ({ id }) => [id],
    }),
  json: ({ rows, ...page }) => ({ data: rows.map(broadcastJson), ...page }),
  command: {
    name: 'broadcast list',
    help: 'list the newest broadcasts of a WABA, or of all',
    example: 'broadcast list',
    waba: 'the WABA',
    show: ({ rows }, { call }) => describeBroadcasts(rows, call.wabaId),
    showAll: (pages) => describeBroadcasts(pages.flatMap(({ rows }) => rows)),
  },
});

const get = operation({
  id: 'getBroadcast',
  method: 'GET',
  path: '/api/external/broadcasts/:id',
  scope: 'read',
  summary: 'Get a broadcast',
  description:
    'Counts of recipients by how far their messages are. `erased` are those whose customers or messages were erased since. Of a broadcast with more than 2,000 recipients the counts may be some seconds old: up to 20 times as old as the counting takes. A start, a pause or a cancellation shows at once.',
  ...OF_BROADCAST,
  answers: { 200: { description: 'The broadcast.', schema: BroadcastDetails } },
  run: ({ tools, wabaId }, { id }) => broadcastOf(tools, wabaId, id),
  json: broadcastDetailsJson,
  command: {
    name: 'broadcast show',
    help: 'show the progress of a broadcast and the outcomes of its messages',
    example: 'broadcast show 12',
    waba: wabaOfBroadcast,
    show: (broadcast: BroadcastView, { tools }) => describeBroadcast(tools.config, broadcast),
  },
});

const VERBS = [
  {
    verb: 'pause',
    summary: 'Pause a broadcast',
    description: 'Messages whose sending has not begun wait until it is resumed.',
    state: 'paused',
    help: 'pause a broadcast: messages whose sending has not begun wait until it is resumed',
  },
  {
    verb: 'resume',
    summary: 'Resume a broadcast',
    description:
      'Continues where it was paused. Failures before this moment do not pause it again. Failed recipients stay failed.',
    state: 'running',
    help: 'resume a paused broadcast',
  },
  {
    verb: 'cancel',
    summary: 'Cancel a broadcast',
    description:
      'Ends it permanently. Messages whose sending has not begun are not sent, and give no `status` event.',
    state: 'cancelled',
    help: 'end a broadcast; sent messages stay sent, the others are not sent',
  },
] as const;

const verbs = VERBS.map(({ verb, state, help, ...described }) =>
  operation({
    id: `${verb}Broadcast`,
    method: 'POST',
    path: `/api/external/broadcasts/:id/${verb}`,
    scope: 'send',
    ...described,
    ...OF_BROADCAST,
    errors: verb === 'cancel' ? ['broadcast_finished'] : ['broadcast_finished', 'broadcast_not_started'],
    answers: {
      200: { description: 'The broadcast after the change.', schema: BroadcastDetails, example: { state } },
    },
    run: ({ tools, wabaId }, { id }) => changeBroadcast(tools, { wabaId, broadcastId: id }, verb, null),
    json: broadcastDetailsJson,
    command: {
      name: `broadcast ${verb}`,
      help,
      example: `broadcast ${verb} 12`,
      waba: wabaOfBroadcast,
      show: (broadcast, { tools }) => describeBroadcast(tools.config, broadcast),
    },
  }),
);

const COMMANDS = [list, get, ...verbs];

export const BROADCAST_OPERATIONS = [create, ...RECIPIENT_OPERATIONS, start, ...COMMANDS];

export function broadcastCommand(): Command {
  const description = 'watch, pause, resume and cancel broadcasts: one template to many customers';
  return commandGroup('broadcast', description, COMMANDS.map(operationCommand));
}
