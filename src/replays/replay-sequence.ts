/** What decides the order in which events are sent again. */
export type ReplayedEvent = {
  /** The lane of the event's own key, and its number there. */
  lane: string;
  sequence: string;
  conversationId: string | null;
};

/**
 * The lane of a replayed event: apart from live ones, one per key, conversation or endpoint as the endpoint's order
 * scope says. Starts with `replay/<replayId>/`, with which no lane of a live event can start.
 */
export function replayLane(
  replayId: string,
  scope: 'event' | 'conversation' | 'endpoint',
  event: Pick<ReplayedEvent, 'lane' | 'conversationId'>,
): string {
  const prefix = `replay/${replayId}/`;
  if (scope === 'endpoint') return `${prefix}endpoint`;
  if (scope === 'conversation' && event.conversationId !== null) {
    return `${prefix}conversation/${event.conversationId}`;
  }
  return prefix + event.lane;
}

/**
 * Puts the events of each lane into the order of their sequence; everything else keeps its place. Ids of one
 * millisecond say nothing about order, and clocks of two machines differ.
 */
export function inLaneOrder<Event extends Pick<ReplayedEvent, 'lane' | 'sequence'>>(
  events: readonly Event[],
): Event[] {
  const placesOf = new Map<string, number[]>();
  for (const [place, { lane }] of events.entries()) {
    const places = placesOf.get(lane);
    if (places === undefined) placesOf.set(lane, [place]);
    else places.push(place);
  }
  const ordered = [...events];
  for (const places of placesOf.values()) {
    const ofLane = places.flatMap((place) => events[place] ?? []).sort(bySequence);
    for (const [index, event] of ofLane.entries()) ordered[places[index] ?? 0] = event;
  }
  return ordered;
}

function bySequence(a: { sequence: string }, b: { sequence: string }): number {
  const difference = BigInt(a.sequence) - BigInt(b.sequence);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}
