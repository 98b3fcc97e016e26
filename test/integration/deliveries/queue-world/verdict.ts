import type { OrderScope } from '../../../../src/engine/endpoint/endpoint-settings.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { TRANSITIONS } from '../../../support/queue-transitions.ts';
import type { Reception } from './receiver.ts';
import type { PublishedOne, World } from './world.ts';

type Logged = {
  id: string;
  /** The delivery that sends it with others. */
  sentWith: string | null;
  endpointId: string;
  uuid: string;
  state: string;
  replayId: string | null;
  type: string;
  finishedAtMs: number | null;
  asideAtMs: number | null;
};

type Delivery = Logged & { event: PublishedOne; receptions: Reception[]; beganAtMs: number };

/** All that is wrong with what the receivers of a world got, once its queue has run empty. */
export async function judge(world: World): Promise<string[]> {
  const logged = await readLog(world);
  const deliveries = knownDeliveries(world, logged);
  return [
    ...world.violations,
    ...(await lost(world, logged, deliveries)),
    ...disorder(world, deliveries),
    ...misplaced(world, deliveries),
    ...world.receivers.changed,
    ...overlaps(world, deliveries),
  ];
}

async function readLog({ database }: World): Promise<Logged[]> {
  return await query<Logged>(
    database,
    `select d.id, d.batch_id as "sentWith", d.endpoint_id as "endpointId", d.event_uuid as uuid, d.state, d.replay_id as "replayId",
            ev.event_type as type, cast(extract(epoch from d.finished_at) * 1000 as float8) as "finishedAtMs",
            cast(extract(epoch from d.stepped_aside_at) * 1000 as float8) as "asideAtMs"
       from deliveries d join events ev on ev.day = d.event_day and ev.id = d.event_uuid`,
  );
}

function knownDeliveries({ published, receivers }: World, logged: readonly Logged[]): Delivery[] {
  const events = new Map(published.map((event) => [event.uuid, event]));
  const received = Map.groupBy(receivers.receptions, ({ deliveryId }) => deliveryId);
  return logged.flatMap((row) => {
    const event = events.get(row.uuid);
    const receptions = received.get(row.sentWith ?? row.id) ?? [];
    const beganAtMs = Math.min(...receptions.map(({ beganAtMs }) => beganAtMs));
    return event === undefined ? [] : [{ ...row, event, receptions, beganAtMs }];
  });
}

/** COMPLETENESS: everything is delivered to everybody, or said to be what else became of it, and nothing is stuck. */
async function lost(
  world: World,
  logged: readonly Logged[],
  deliveries: readonly Delivery[],
): Promise<string[]> {
  const left = await query<{ id: string; state: string }>(
    world.database,
    'select delivery_id as id, state from delivery_queue',
  );
  const live = new Set(
    deliveries
      .filter(({ replayId }) => replayId === null)
      .map(({ uuid, endpointId }) => `${uuid} ${endpointId}`),
  );
  const missing = world.published.flatMap(({ uuid, subscribers }) =>
    [...subscribers.keys()]
      .filter((endpointId) => !live.has(`${uuid} ${endpointId}`))
      .map((id) => `${uuid} for ${id}`),
  );
  return [
    ...left.map(({ id, state }) => `${id} is stuck as ${state}`),
    ...missing.map((name) => `${name} has no delivery`),
    ...logged.filter(({ state }) => state === 'pending').map(({ id }) => `${id} is pending for ever`),
    ...deliveries
      .filter((one) => !isAccounted(world, one))
      .map(({ id, state }) => `${id} is ${state}, but was not`),
  ];
}

function isAccounted({ dropped }: World, one: Delivery): boolean {
  const { id, sentWith, endpointId, replayId, state, receptions } = one;
  if (state === 'delivered') return receptions.some(({ ok }) => ok);
  if (state === 'failed') return receptions.length > 0;
  return [id, sentWith ?? id, endpointId, `replay ${replayId}`].some((name) => dropped.has(name));
}

/** Both clocks are this machine's; one is read in whole milliseconds. */
const CLOCK_SPARE_MS = 1;

/** ORDER: the first attempt of one begins after those before it in its lane are settled or aside. */
function disorder(world: World, deliveries: readonly Delivery[]): string[] {
  const lines = Map.groupBy(deliveries, ({ endpointId, replayId }) => `${endpointId} ${replayId}`);
  return [...lines.values()].flatMap((line) =>
    line
      .filter(({ beganAtMs }) => Number.isFinite(beganAtMs))
      .flatMap((later) => {
        const scope = scopeOf(world, later);
        return line
          .filter((earlier) => precedes(earlier, later, scope) && !isTogether(earlier, later))
          .filter(({ finishedAtMs, asideAtMs }) => {
            const wayFreeMs = Math.min(
              finishedAtMs ?? Number.POSITIVE_INFINITY,
              asideAtMs ?? Number.POSITIVE_INFINITY,
            );
            return wayFreeMs > later.beganAtMs + CLOCK_SPARE_MS;
          })
          .map(
            (earlier) => `${later.id} (${nameOf(later)}, ${scope}) before ${earlier.id} (${nameOf(earlier)})`,
          );
      }),
  );
}

function isTogether({ sentWith }: Delivery, other: Delivery): boolean {
  return sentWith !== null && sentWith === other.sentWith;
}

/** ORDER in a request: each request of a batch has all of it, the earlier ones first. */
function misplaced(world: World, deliveries: readonly Delivery[]): string[] {
  const batches = Map.groupBy(
    deliveries.filter(({ sentWith }) => sentWith !== null),
    ({ sentWith }) => sentWith,
  );
  return [...batches.values()].flatMap((members) => {
    const places = new Map(members[0]?.receptions[0]?.numbers.map((n, place) => [n, place]));
    if (places.size === 0) return [];
    const placeOf = ({ event }: Delivery) => places.get(event.n) ?? Number.NaN;
    const missing = members.filter((one) => Number.isNaN(placeOf(one)));
    const swapped = members.flatMap((later) =>
      members.filter(
        (earlier) => precedes(earlier, later, scopeOf(world, later)) && placeOf(earlier) > placeOf(later),
      ),
    );
    return [
      ...missing.map(({ id }) => `${id} is not in its batch`),
      ...swapped.map(({ id }) => `${id} stands behind a later one in its batch`),
      ...(places.size === members.length ? [] : [`${members[0]?.sentWith} has others' events`]),
    ];
  });
}

const nameOf = ({ event }: Delivery) => `${event.key} #${event.sequence}, turn ${event.turn}`;

function precedes(earlier: Delivery, later: Delivery, scope: OrderScope): boolean {
  const [a, b] = [earlier.event, later.event];
  if (a.key === b.key) return a.sequence < b.sequence;
  const inIntake = a.turn !== null && b.turn !== null && later.replayId === null;
  return inIntake && Number(a.turn) < Number(b.turn) && laneOf(a, scope) === laneOf(b, scope);
}

function laneOf({ key, conversationId }: PublishedOne, scope: OrderScope): string {
  if (scope === 'endpoint') return 'endpoint';
  return scope === 'conversation' && conversationId !== null ? `conversation ${conversationId}` : key;
}

const WIDTH: readonly OrderScope[] = ['event', 'conversation', 'endpoint'];

/** The narrowest scope by which a delivery went from when it was published until it was first attempted. */
function scopeOf({ scopes }: World, { endpointId, event, beganAtMs }: Delivery): OrderScope {
  const published = event.subscribers.get(endpointId) ?? 'event';
  const since = msOfEvent(event);
  const later = scopes.filter(
    (change) => change.endpointId === endpointId && change.untilMs >= since && change.fromMs <= beganAtMs,
  );
  const seen = [published, ...later.map(({ scope }) => scope)];
  return WIDTH.find((scope) => seen.includes(scope)) ?? 'event';
}

/** A little before the event was stored. */
function msOfEvent({ uuid }: PublishedOne): number {
  return Number.parseInt(uuid.replaceAll('-', '').slice(0, 12), 16) - CLOCK_SPARE_MS;
}

/** MUTUAL EXCLUSION: in each lane, and for each key at each endpoint, one request at a time. */
function overlaps({ receivers }: World, deliveries: readonly Delivery[]): string[] {
  const ofKeys = deliveries
    .filter(({ asideAtMs }) => asideAtMs === null)
    // One request may have several events of a key: it counts for the first of them.
    .filter(
      (one, index, all) =>
        !all.slice(0, index).some((other) => isTogether(one, other) && other.event.key === one.event.key),
    )
    .flatMap(({ endpointId, replayId, event, receptions }) =>
      receptions.map((reception) => ({ ...reception, lane: `${endpointId} ${replayId} ${event.key}` })),
    );
  return [...receivers.receptions, ...ofKeys]
    .toSorted((a, b) => (a.lane === b.lane ? a.beginMs - b.beginMs : a.lane < b.lane ? -1 : 1))
    .flatMap((reception, index, all) => {
      const before = all[index - 1];
      const overlap = before?.lane === reception.lane && before.endMs > reception.beginMs;
      return overlap ? [`${reception.deliveryId} beside ${before.deliveryId} in ${reception.lane}`] : [];
    });
}

/** Moves of rows that are not in the table of transitions, and those of the table that nothing made. */
export async function checkMoves({ database }: World): Promise<{ unknown: string[]; seen: string[] }> {
  const rows = await query<{ from: string; to: string }>(
    database,
    'select distinct from_state as "from", to_state as "to" from queue_moves',
  );
  const known = new Set(ALL_MOVES);
  const seen = rows.map(({ from, to }) => `${from} to ${to}`);
  return { unknown: seen.filter((move) => !known.has(move)), seen };
}

/** Every move that the table of transitions has. */
export const ALL_MOVES = TRANSITIONS.flatMap(({ from, to }) =>
  from.flatMap((before) => to.map((after) => `${before} to ${after}`)),
);
