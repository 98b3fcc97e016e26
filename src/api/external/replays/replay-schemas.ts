import { type Static, Type } from 'typebox';
import type { GivenSelection } from '../../../accounts/replay-input.ts';
import type { ReplayView } from '../../../accounts/replays.ts';
import { REPLAYABLE_STATES } from '../../../database/replay-selection.ts';
import { EVENT_TYPES } from '../../../domain/event-type.ts';
import { Time, timeOf } from '../api-time.ts';
import { nullable } from '../nullable.ts';

const DATE_TIME = Type.String({ format: 'date-time' });

/** Which deliveries to send again: `deliveryIds`, or a filter of at least one of the others. */
export const ReplayRequest = Type.Object(
  {
    deliveryIds: Type.Optional(Type.Array(Type.String(), { minItems: 1, maxItems: 1_000 })),
    endpointId: Type.Optional(Type.String({ pattern: '^[1-9]\\d{0,17}$' })),
    from: Type.Optional(Time),
    to: Type.Optional(Time),
    eventTypes: Type.Optional(Type.Array(Type.Enum([...EVENT_TYPES]), { minItems: 1, maxItems: 20 })),
    states: Type.Optional(Type.Array(Type.Enum([...REPLAYABLE_STATES]), { minItems: 1, maxItems: 10 })),
    dryRun: Type.Optional(Type.Boolean()),
  },
  { title: 'ReplayRequest', additionalProperties: false },
);

/** The selection of a request. Throws ApiError 400 for a time that is none. */
export function selectionOf({ dryRun, from, to, ...given }: Static<typeof ReplayRequest>): GivenSelection {
  return {
    ...given,
    from: timeOf('from', from) ?? undefined,
    to: timeOf('to', to) ?? undefined,
  };
}

/** A replay as the list shows it. */
export const Replay = Type.Object(
  {
    id: Type.String(),
    state: Type.Enum(['running', 'paused', 'done', 'cancelled']),
    selection: Type.Object({
      deliveryIds: nullable(Type.Array(Type.String())),
      /** For the endpoints that never had them. */
      eventIds: nullable(Type.Array(Type.String())),
      endpointId: nullable(Type.String()),
      from: nullable(DATE_TIME),
      to: nullable(DATE_TIME),
      eventTypes: nullable(Type.Array(Type.String())),
      states: nullable(Type.Array(Type.String())),
    }),
    total: Type.Integer(),
    queued: Type.Integer(),
    skipped: Type.Integer(),
    requestedBy: Type.String(),
    createdAt: DATE_TIME,
    finishedAt: nullable(DATE_TIME),
  },
  { title: 'Replay' },
);

/** One replay with what came of its deliveries. */
export const ReplayWithOutcomes = Type.Object(
  {
    ...Replay.properties,
    outcomes: Type.Object({
      pending: Type.Integer(),
      delivered: Type.Integer(),
      failed: Type.Integer(),
      dropped: Type.Integer(),
    }),
  },
  { title: 'ReplayDetails' },
);

/** A replay as tenants see it. */
export function replayJson<View extends ReplayView>({ replayId, wabaId, ...shown }: View) {
  return {
    id: replayId,
    ...shown,
    createdAt: shown.createdAt.toISOString(),
    finishedAt: shown.finishedAt?.toISOString() ?? null,
  };
}
