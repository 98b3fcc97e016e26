import { EVENT_TYPES, eventTypeNamed } from '../../platform/event-type.ts';
import { eventUuidOf } from '../../platform/public-ids.ts';
import { checkRowId, checkTime, invalidValue, shown } from '../../platform/request-input.ts';
import { REPLAYABLE_STATES, type ReplayableState, type ReplaySelection } from './replay-selection.ts';

/** A list of ids, or a filter with at least one member. */
export type GivenSelection = {
  /** `dlv_…`, at most 1,000. */
  deliveryIds?: readonly string[] | undefined;
  /** `evt_…`: for the endpoints, or the one named, that take them now and never had them; with or without deliveries. */
  eventIds?: readonly string[] | undefined;
  endpointId?: string | undefined;
  /** When the deliveries were created; `to` is exclusive. */
  from?: Date | undefined;
  to?: Date | undefined;
  eventTypes?: readonly string[] | undefined;
  states?: readonly string[] | undefined;
};

const MAX_IDS = 1_000;
/** Of a day that cannot be, too: it is unknown, as any other. */
const DELIVERY_ID = /^dlv_([0-9a-f]{8})([0-9a-f]{4})(7[0-9a-f]{3})([0-9a-f]{4})([0-9a-f]{12})$/;

/**
 * Without `to`, and with one that is still to come, it ends at `now`, so that what arrives during a replay is not part of it. Throws
 * RequestError `invalid_value`.
 */
export function checkSelection(given: GivenSelection, now: Date): ReplaySelection {
  const { deliveryIds, eventIds, endpointId, from, to, eventTypes, states } = given;
  const isList = deliveryIds !== undefined || eventIds !== undefined;
  const ofEndpoint = eventIds === undefined ? endpointId : undefined;
  const filters = [ofEndpoint, from, to, eventTypes, states].filter((value) => value !== undefined);
  if (!isList && filters.length === 0) {
    throw invalidValue(
      'Choose the deliveries to send again: ids, or an endpoint, a time range, event types or states.',
    );
  }
  if (isList && filters.length > 0) {
    throw invalidValue('Name deliveries or give a filter, not both.');
  }
  const end = to === undefined || to > now ? now : to;
  if (from !== undefined) checkTime(from);
  checkTime(end);
  if (from !== undefined && from >= (to ?? now)) {
    throw invalidValue('The time range is empty: "from" must be before "to", and not in the future.');
  }
  return {
    deliveryIds: listOfDeliveries(given),
    eventIds: eventIds?.flatMap((id) => eventUuidOf(id) ?? []) ?? null,
    endpointId: endpointId === undefined ? null : checkRowId('The id of the endpoint', endpointId),
    from: from?.toISOString() ?? null,
    to: end.toISOString(),
    eventTypes: checkNames('event type', [...EVENT_TYPES, 'upstream.<field>'], eventTypes, eventTypeNamed),
    states: checkNames('delivery state', REPLAYABLE_STATES, states, stateNamed),
  };
}

function listOfDeliveries({ deliveryIds, eventIds }: GivenSelection): string[] | null {
  if (eventIds !== undefined && !deliveryIds?.length) return [];
  return deliveryIds === undefined ? null : checkDeliveryIds(deliveryIds);
}

function checkDeliveryIds(ids: readonly string[]): string[] {
  if (ids.length === 0) throw invalidValue('Name at least one delivery.');
  if (ids.length > MAX_IDS)
    throw invalidValue(`Name at most ${MAX_IDS} deliveries at once; use a filter for more.`);
  return [...new Set(ids)].map((id) => {
    const parts = DELIVERY_ID.exec(id)?.slice(1);
    if (parts === undefined) {
      throw invalidValue(`A delivery id is dlv_ and 32 hex digits, not ${shown(id)}.`, 'deliveryIds');
    }
    return parts.join('-');
  });
}

function stateNamed(name: string): ReplayableState | null {
  return REPLAYABLE_STATES.find((known) => known === name) ?? null;
}

function checkNames<Name extends string>(
  what: string,
  known: readonly string[],
  given: readonly string[] | undefined,
  named: (name: string) => Name | null,
): Name[] | null {
  if (given === undefined) return null;
  if (given.length === 0) throw invalidValue(`Name at least one ${what} of ${known.join(', ')}.`);
  return [...new Set(given)].map((name) => {
    const found = named(name);
    if (found === null)
      throw invalidValue(`There is no ${what} ${shown(name)}; known are ${known.join(', ')}.`);
    return found;
  });
}
