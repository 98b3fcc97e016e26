import { type Static, Type } from 'typebox';
import type { GivenSelection } from '../../features/replays/replay-input.ts';
import { REPLAYABLE_STATES } from '../../features/replays/replay-selection.ts';
import type { ReplayView } from '../../features/replays/replays.ts';
import { EventTypeSchema } from '../../platform/event-type-schema.ts';
import {
  accountObjectPath,
  count,
  dateTime,
  named,
  namedClosed,
  nullable,
  Time,
  text,
  timeOf,
} from '../external/schema-kit.ts';

const EXAMPLE_ID = '12';

export const OF_REPLAY = {
  tag: 'Replays' as const,
  ...accountObjectPath('The id of the replay.', EXAMPLE_ID),
};

/** Of the endpoint whose deliveries are sent again, or that gets them. */
export const EndpointId = Type.String({ pattern: '^[1-9]\\d{0,17}$', examples: ['3'] });

/** Which deliveries to send again: `deliveryIds`, or a filter of at least one of the others. */
export const ReplayRequest = namedClosed('ReplayRequest', {
  deliveryIds: Type.Optional(Type.Array(Type.String(), { minItems: 1, maxItems: 1_000 })),
  endpointId: Type.Optional(EndpointId),
  from: Type.Optional(Time),
  to: Type.Optional(Time),
  eventTypes: Type.Optional(Type.Array(EventTypeSchema, { minItems: 1, maxItems: 20 })),
  states: Type.Optional(Type.Array(Type.Enum([...REPLAYABLE_STATES]), { minItems: 1, maxItems: 10 })),
  dryRun: Type.Optional(Type.Boolean()),
});

/** Throws RequestError `invalid_value` for a time that is none. */
export function selectionOf({
  from,
  to,
  ...given
}: Omit<Static<typeof ReplayRequest>, 'dryRun'>): GivenSelection {
  return {
    ...given,
    from: timeOf('from', from) ?? undefined,
    to: timeOf('to', to) ?? undefined,
  };
}

export const Replay = named('Replay', {
  id: text(EXAMPLE_ID),
  state: Type.Enum(['running', 'paused', 'done', 'cancelled']),
  selection: Type.Object({
    deliveryIds: nullable(Type.Array(Type.String())),
    eventIds: nullable(Type.Array(Type.String())),
    endpointId: nullable(Type.String(), '3'),
    from: nullable(dateTime(), '2026-11-19T00:00:00.000Z'),
    to: nullable(dateTime(), '2026-11-21T09:30:00.000Z'),
    eventTypes: nullable(Type.Array(Type.String())),
    states: nullable(Type.Array(Type.String()), ['failed', 'dropped']),
  }),
  total: count(1_250),
  queued: count(300),
  skipped: count(2),
  requestedBy: text('API key 3'),
  createdAt: dateTime(),
  finishedAt: nullable(dateTime()),
});

export const ReplayWithOutcomes = named('ReplayDetails', {
  ...Replay.properties,
  outcomes: Type.Object({
    pending: count(40),
    delivered: count(255),
    failed: count(5),
    dropped: Type.Integer(),
  }),
});

export const ReplayCount = named('ReplayCount', {
  dryRun: Type.Literal(true),
  deliveries: count(1_250),
  byType: Type.Record(Type.String(), Type.Integer(), { examples: [{ message: 1_000, payment: 250 }] }),
  byEndpoint: Type.Record(Type.String(), Type.Integer(), { examples: [{ 3: 1_250 }] }),
  oldest: nullable(dateTime(), '2026-11-19T00:00:04.120Z'),
  newest: nullable(dateTime(), '2026-11-21T09:29:58.001Z'),
  skipped: Type.Object({ pending: count(2), noBody: Type.Integer(), endpointGone: Type.Integer() }),
});

export function replayJson<View extends ReplayView>({ replayId, wabaId, ...shown }: View) {
  return { id: replayId, ...shown };
}
