import { Type } from 'typebox';
import { RECIPIENT_STATES } from '../../../features/messages/broadcasts/broadcast-recipients.ts';
import {
  BROADCAST_STATES,
  type Broadcast as BroadcastRow,
} from '../../../features/messages/broadcasts/broadcast-store.ts';
import type { BroadcastView } from '../../../features/messages/broadcasts/broadcasts.ts';
import {
  PARAMETER_NAME,
  RECIPIENT_LIMITS,
  RECIPIENTS_PAGE,
} from '../../../features/messages/broadcasts/recipient-file.ts';
import {
  accountObjectPath,
  closed,
  count,
  dateTime,
  named,
  namedClosed,
  nullable,
  optionalParameter,
  parameter,
  text,
  upstreamObject,
  upstreamText,
} from '../../external/schema-kit.ts';

const EXAMPLE_ID = '12';

export const OF_BROADCAST = {
  tag: 'Broadcasts' as const,
  ...accountObjectPath('The id of the broadcast.', EXAMPLE_ID),
};

const TEMPLATE = { name: 'winter_sale', language: { code: 'en_US' } };

export const NEW_BROADCAST = { name: 'Winter sale', phoneNumberId: '800000000000111', template: TEMPLATE };

export const NewBroadcast = namedClosed('NewBroadcast', {
  name: parameter(upstreamText(200), 'For people.', 'Winter sale'),
  phoneNumberId: parameter(upstreamText(128), 'The number that it leaves from.', '800000000000111'),
  template: {
    ...Type.Object(
      { name: Type.String(), language: Type.Object({ code: Type.String() }, { additionalProperties: true }) },
      { additionalProperties: true },
    ),
    description:
      'Upstream’s own object of a template message, with the components that are the same for all recipients.',
    examples: [TEMPLATE],
  },
  sendAt: Type.Optional(
    Type.String({
      format: 'date-time',
      description:
        'Once started, it begins then, with its offset: 30 seconds to 35 days ahead. Left out: at its start.',
      examples: ['2026-12-01T09:00:00+01:00'],
    }),
  ),
});

export const Broadcast = named('Broadcast', {
  id: text(EXAMPLE_ID),
  name: text('Winter sale'),
  phoneNumberId: text('800000000000111'),
  template: upstreamObject(TEMPLATE),
  state: Type.Enum([...BROADCAST_STATES]),
  pausedBecause: nullable(Type.String()),
  recipients: count(12_000),
  pending: count(9_400),
  sendAt: nullable(dateTime()),
  requestedBy: text('API key 3'),
  createdAt: dateTime(),
  startedAt: nullable(dateTime()),
  finishedAt: nullable(dateTime()),
});

export const BroadcastDetails = named('BroadcastDetails', {
  ...Broadcast.properties,
  counts: Type.Object({
    pending: count(9_400),
    queued: count(200),
    suppressed: count(12),
    accepted: count(300),
    delivered: count(1_300),
    read: count(780),
    failed: count(8),
    unknown: Type.Integer(),
    cancelled: Type.Integer(),
    erased: Type.Integer(),
    failedByCode: Type.Record(Type.String(), Type.Integer(), { examples: [{ 131026: 8 }] }),
  }),
});

export function broadcastJson({ wabaId, runningSince, template, ...shown }: BroadcastRow) {
  return { ...shown, template: JSON.parse(template) as object };
}

export function broadcastDetailsJson({ counts, ...broadcast }: BroadcastView) {
  return { ...broadcastJson(broadcast), counts };
}

const MOST_PARAMETERS = RECIPIENT_LIMITS.parameters;
const Parameter = Type.String({ maxLength: RECIPIENT_LIMITS.parameter });

export const NewRecipients = namedClosed('NewRecipients', {
  recipients: Type.Array(
    closed({
      to: parameter(
        Type.String({ maxLength: RECIPIENT_LIMITS.to }),
        'A phone number in any usual form, or a business-scoped user id.',
        '+1 202-555-0143',
      ),
      parameters: Type.Optional({
        ...Type.Union([
          Type.Array(Parameter, { maxItems: MOST_PARAMETERS }),
          Type.Record(Type.String({ pattern: PARAMETER_NAME.source }), Parameter, {
            maxProperties: MOST_PARAMETERS,
          }),
        ]),
        description: 'The variables of the body of the template: by their place, or by their names.',
        examples: [['Asha', '20 %']],
      }),
      ref: optionalParameter(
        upstreamText(RECIPIENT_LIMITS.ref),
        'Your own name for the recipient.',
        'customer-4711',
      ),
    }),
    { minItems: 1, maxItems: RECIPIENTS_PAGE.most },
  ),
});

export const AddedRecipients = named('AddedRecipients', {
  added: count(1),
  duplicate: count(1),
  invalid: count(1),
  lines: Type.Array(
    Type.Object({
      result: Type.Enum(['added', 'duplicate', 'invalid']),
      param: Type.Optional(text('recipients/2/to')),
      message: Type.Optional(text('The customer must be a phone number with its country code.')),
    }),
  ),
});

export const BroadcastRecipient = named('BroadcastRecipient', {
  to: text('12025550143'),
  ref: nullable(Type.String(), 'customer-4711'),
  state: Type.Enum([...RECIPIENT_STATES]),
  serviceMessageId: nullable(Type.String(), '4711'),
  errorCode: nullable(Type.String()),
});
