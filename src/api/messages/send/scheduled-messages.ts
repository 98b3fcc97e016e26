import { Type } from 'typebox';
import {
  cancelScheduled,
  listScheduled,
  moveScheduled,
  type ScheduledMessage,
} from '../../../features/messages/send/scheduled-messages.ts';
import { notFound } from '../../errors/api-error.ts';
import { PAGE_PARAMETERS, readPage } from '../../external/page.ts';
import {
  closed,
  listOf,
  named,
  namedClosed,
  nullable,
  objectPath,
  optionalParameter,
  parameter,
  sendJsonText,
  sendListText,
  text,
  upstreamObject,
  upstreamText,
} from '../../external/schema-kit.ts';
import { restOperation } from '../../operations/operation.ts';

const time = Type.String({ format: 'date-time' });

const Scheduled = named('ScheduledMessage', {
  serviceMessageId: text('4711'),
  conversationId: text('42'),
  phoneNumberId: text('800000000000111'),
  type: text('text'),
  state: Type.Enum(['scheduled', 'cancelled']),
  sendAt: { ...time, examples: ['2026-12-01T08:00:00.000Z'] },
  notAfter: nullable(time),
  createdAt: { ...time, examples: ['2026-11-21T09:30:00.001Z'] },
  message: upstreamObject({
    messaging_product: 'whatsapp',
    recipient_type: 'individual',
    to: '+12025550143',
    type: 'text',
    text: { body: 'Your appointment is tomorrow at 9.' },
  }),
});

/** The message stands in the JSON text exactly as it is stored. */
function scheduledText(row: ScheduledMessage, state: 'scheduled' | 'cancelled' = 'scheduled'): string {
  const {
    id: serviceMessageId,
    conversationId,
    phoneNumberId,
    type,
    sendAt,
    notAfter,
    createdAt,
    content,
  } = row;
  const times = { sendAt, notAfter, createdAt };
  const members = { serviceMessageId, conversationId, phoneNumberId, type, state, ...times };
  return `${JSON.stringify(members).slice(0, -1)},"message":${content}}`;
}

const OF_MESSAGE = {
  tag: 'Messages',
  errors: ['message_not_scheduled'],
  ...objectPath('The `serviceMessageId`.', '4711'),
} as const;

const list = restOperation({
  id: 'listScheduledMessages',
  method: 'GET',
  path: '/api/external/messages',
  scope: 'read',
  summary: 'List scheduled messages',
  description:
    'Messages with `sendAt` whose sending has not begun, the next one first. Sent ones are in their conversations.',
  tag: 'Messages',
  query: closed({
    ...PAGE_PARAMETERS,
    state: optionalParameter(Type.Enum(['scheduled']), 'Only scheduled messages have a list.', 'scheduled'),
    phoneNumberId: optionalParameter(upstreamText(128), 'Those of this number only.', '800000000000111'),
  }),
  answers: { 200: { schema: listOf(Scheduled), description: 'A page of scheduled messages.' } },
  run: async (call, { phoneNumberId = null, state: _, ...page }) => {
    const { rows, ...rest } = await readPage(call, page, {
      name: `scheduled ${JSON.stringify([phoneNumberId])}`,
      find: (after, { limit = 100 }) =>
        listScheduled(call.database, call.wabaId, { phoneNumberId }, { after, limit }),
      position: ({ sendAt, id }) => [sendAt.toISOString(), id],
    });
    return sendListText(
      call.reply,
      rows.map((row) => scheduledText(row)),
      rest,
    );
  },
});

const move = restOperation({
  id: 'moveScheduledMessage',
  method: 'PATCH',
  path: '/api/external/messages/:id',
  scope: 'send',
  summary: 'Move a scheduled message',
  description:
    'To another time, 30 seconds to 35 days ahead. Without `notAfter` a former one keeps its distance to `sendAt`. Once its sending has begun, or it has failed or was cancelled: 409 `message_not_scheduled`.',
  ...OF_MESSAGE,
  requests: { later: { sendAt: '2026-12-01T10:00:00+01:00' } },
  body: namedClosed('MessageMove', {
    sendAt: parameter(time, 'The new time, with its offset.', '2026-12-01T10:00:00+01:00'),
    notAfter: optionalParameter(time, 'When it fails instead.', '2026-12-01T12:00:00+01:00'),
  }),
  answers: { 200: { schema: Scheduled, description: 'The message at its new time.' } },
  run: async ({ tools, wabaId, reply }, { id, ...given }) => {
    const moved = await moveScheduled(tools, wabaId, id, given);
    if (moved === null) throw notFound();
    return sendJsonText(reply, scheduledText(moved));
  },
});

const cancel = restOperation({
  id: 'cancelScheduledMessage',
  method: 'POST',
  path: '/api/external/messages/:id/cancel',
  scope: 'send',
  summary: 'Cancel a scheduled message',
  description:
    'It is not sent, and gives no `status` event. Once its sending has begun, or it has failed or was cancelled: 409 `message_not_scheduled`.',
  ...OF_MESSAGE,
  answers: {
    200: { schema: Scheduled, description: 'The cancelled message.', example: { state: 'cancelled' } },
  },
  run: async ({ tools, wabaId, reply }, { id }) => {
    const cancelled = await cancelScheduled(tools, wabaId, id);
    if (cancelled === null) throw notFound();
    return sendJsonText(reply, scheduledText(cancelled, 'cancelled'));
  },
});

export const SCHEDULED_OPERATIONS = [list, move, cancel];
