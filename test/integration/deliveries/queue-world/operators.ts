import { setTimeout as sleep } from 'node:timers/promises';
import { findSubscribers, publishTo } from '../../../../src/engine/deliveries/publish.ts';
import { releaseReservedEvent } from '../../../../src/engine/deliveries/release-event.ts';
import type { OrderScope } from '../../../../src/engine/endpoint/endpoint-settings.ts';
import { claimOne } from '../../../../src/engine/queue/claim-one.ts';
import { lockLanes } from '../../../../src/engine/queue/order-scope.ts';
import { lockPublishing } from '../../../../src/engine/queue/publishing-locks.ts';
import { dropWaiting, removeDelivery } from '../../../../src/engine/queue/remove.ts';
import { bringForward } from '../../../../src/engine/queue/retry.ts';
import {
  deleteEndpoint,
  enableEndpoint,
  holdEndpoint,
} from '../../../../src/features/endpoints/endpoint-modes.ts';
import { retryEndpoint } from '../../../../src/features/endpoints/retry-now.ts';
import { insertTestEvent } from '../../../../src/features/endpoints/test-event.ts';
import {
  changeReplay,
  queueReplayPage,
  settleReplay,
} from '../../../../src/features/replays/replay-steps.ts';
import { findReplay } from '../../../../src/features/replays/replay-store.ts';
import { startReplay } from '../../../../src/features/replays/replays.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { isLockTimeout } from '../../../../src/platform/postgres/error-class.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { publicDeliveryId } from '../../../../src/platform/public-ids.ts';
import { RequestError } from '../../../../src/platform/request-input.ts';
import { retryBriefly } from '../../../../src/platform/temporal/activity-kit.ts';
import { carry, LONG_MS, newRun } from './workers.ts';
import { SET_SCOPE, WABAS, type World } from './world.ts';

/** A body of upstream: its items by ordering key; `beside`: not by intake, but by media or sends. */
export type Publication = { waba: number; items: { key: number; reserved: boolean }[]; beside: boolean };

class PublisherDied extends Error {}

/** Publishes a body, now and then claiming what becomes a head; now and then the process dies before it commits. */
export async function publish(world: World, publication: Publication): Promise<void> {
  const { wabaId } = WABAS[publication.waba] ?? WABAS[0];
  const work = () =>
    store(world, publication).catch((error: unknown) => {
      if (!(error instanceof PublisherDied)) throw error;
    });
  await (publication.beside ? work() : world.inTurn(`intake ${wabaId}`, work));
}

async function store(world: World, { waba, items, beside }: Publication): Promise<void> {
  const { database, dice } = world;
  const { wabaId, phoneNumberId } = WABAS[waba] ?? WABAS[0];
  const run = newRun(dice);
  const claims = dice() < 0.5;
  const claimer = claims ? { token: run.token, leaseMs: run.leaseMs, take: () => dice() < 0.7 } : null;
  const numbers = items.map((_, n) => world.nextNumber + n);
  world.nextNumber += items.length;
  const events = items.map(({ key, reserved }, index) => ({
    wabaId,
    phoneNumberId,
    tenantId: String(waba + 1),
    messageId: null,
    type: reserved ? ('order' as const) : ('message' as const),
    eventId: `key ${key}`,
    laneKey: `key ${key}`,
    conversationId: key === 0 ? null : String(1 + (key % 2)),
    dataJson: reserved ? null : dataOf(numbers[index] ?? 0, dice),
  }));
  const { published, subscribers } = await database.transaction(async (trx) => {
    await lockPublishing(trx);
    const found = await findSubscribers(trx, [wabaId]);
    await sleep(dice() * 8);
    const stored = await publishTo(trx, found, events, { occurredAt: new Date(), claimer });
    if (dice() < 0.05) throw new PublisherDied();
    return { published: stored, subscribers: new Map(found.map(({ id, orderScope }) => [id, orderScope])) };
  });
  for (const [index, event] of published.events.entries()) {
    const n = numbers[index] ?? 0;
    const { uuid, lane: key, conversationId, sequence, day } = event;
    const turn = beside ? null : world.published.length;
    world.published.push({ uuid, key, conversationId, sequence: Number(sequence), n, turn, subscribers });
    if (event.body === null) world.reserved.push({ wabaId, day, uuid });
  }
  world.background.push(carry(world, published.claimed, run));
}

/** Most are of a type that is buffered. */
function dataOf(n: number, dice: () => number): string {
  return JSON.stringify({ message: { type: dice() < 0.8 ? 'text' : 'image' }, n });
}

/** Gives some reserved event its body. */
export async function releaseOne({ database, reserved, dice }: World): Promise<boolean> {
  const [event] = reserved.splice(Math.floor(dice() * reserved.length), 1);
  if (event === undefined) return false;
  await database.transaction((trx) => releaseReservedEvent(trx, { ...event, dataJson: '{}' }, new Date()));
  return true;
}

export const OPERATIONS = [
  'drop',
  'empty',
  'pause',
  'enable',
  'scope',
  'replay',
  'switch replay',
  'pause replay',
  'pause attempted replay',
  'cancel paused replay',
  'retry',
  'bring forward',
  'test',
  'remove',
] as const;

export type Operation = { what: (typeof OPERATIONS)[number]; endpoint: number; choice: number };

/** What tenants and operators do; what they may not is refused. */
export async function operate(world: World, operation: Operation): Promise<void> {
  await carryOut(world, operation).catch((error: unknown) => {
    if (!(error instanceof RequestError)) throw error;
  });
}

async function carryOut(world: World, operation: Operation): Promise<void> {
  const { database } = world;
  const { what, endpoint: index, choice } = operation;
  if (what === 'drop') return await dropSome(world);
  if (what.endsWith('replay')) return await replaySome(world, operation);
  const endpoint = world.endpoints[index];
  if (endpoint === undefined || endpoint.removed) return;
  const { id, wabaId, url } = endpoint;
  const tools = { database, actor: SYSTEM };
  if (what === 'empty') {
    world.dropped.add(id);
    await dropWaiting(database, id, { reason: 'emptied by a test' });
  }
  const pauses = what === 'pause' || (what === 'scope' && choice > 2);
  if (pauses) await holdEndpoint(tools, wabaId, { id, mode: 'paused', reason: '' });
  if (what === 'scope') await wantScope(world, id, choice % 3);
  if (what === 'enable') await enableEndpoint(tools, wabaId, { id, waiting: 'send', by: 'a test' });
  if (what === 'retry') await retryEndpoint(tools, wabaId, id);
  // As the loop does when the endpoint is back.
  if (what === 'bring forward')
    await bringForward(database, id, { soonSeconds: 0, mayGoOn: async () => true });
  if (what === 'test') {
    const tenant = { id: '1', businessName: 'x' };
    await insertTestEvent(database, wabaId, { endpoint: { id, url }, tenant });
  }
  if (what === 'remove' && choice === 0) {
    endpoint.removed = true;
    world.dropped.add(id);
    await deleteEndpoint(tools, wabaId, id);
  }
}

/** One of each state. */
async function dropSome({ database, dropped }: World): Promise<void> {
  const rows = await query<{ id: string }>(
    database,
    'select distinct on (state) delivery_id as id from delivery_queue order by state, random()',
  );
  for (const { id } of rows) {
    dropped.add(id);
    await database.transaction((trx) => removeDelivery(trx, id, 'dropped by a test'));
  }
}

const SCOPES: readonly OrderScope[] = ['event', 'conversation', 'endpoint'];

/** Asks for a scope; it is tried with all that are wanted, now and after the next changes. */
async function wantScope(world: World, endpointId: string, choice: number): Promise<void> {
  world.wantedScopes.set(endpointId, SCOPES[choice] ?? 'event');
  await applyScopes(world);
}

export async function applyScopes(world: World): Promise<void> {
  await world.inTurn('scopes', async () => {
    for (const [endpointId, scope] of world.wantedScopes) {
      const change = { endpointId, scope, fromMs: Date.now(), untilMs: 0 };
      if (await changeScope(world, endpointId, scope)) {
        world.scopes.push(change);
        world.wantedScopes.delete(endpointId);
      }
      change.untilMs = Date.now() + 1;
    }
  });
}

/** False: something is pending, or is being published. */
async function changeScope({ database, endpoints }: World, id: string, scope: OrderScope): Promise<boolean> {
  const wabaId = endpoints.find((endpoint) => endpoint.id === id)?.wabaId ?? '';
  try {
    return await database.transaction(async (trx) => {
      if ((await lockLanes(trx, { wabaId, id })).count > 0) return false;
      await execute(trx, `${SET_SCOPE} where id = :id`, { scope, id });
      return true;
    });
  } catch (error) {
    if (isLockTimeout(error)) return false;
    throw error;
  }
}

/** What an operation waits for comes within so many looks, or not at all. */
const LOOKS = 100;
const LOOK_MS = 4;

/** Begins a replay of what is settled, and pauses or cancels it at once or in the middle; or switches one that began earlier. */
async function replaySome(world: World, { what, choice }: Operation): Promise<void> {
  if (what === 'switch replay') {
    const earlier = world.replays[Math.floor(world.dice() * world.replays.length)];
    const state = (['paused', 'running', 'cancelled'] as const)[choice % 3] ?? 'running';
    if (earlier !== undefined) await switchReplay(world, earlier, state);
    return;
  }
  const settled = await settledOf(world);
  const [first] = settled;
  if (first === undefined) return;
  const { id, wabaId } = first;
  const tools = { database: world.database, actor: SYSTEM };
  // Nothing of it is attempted before it is paused.
  const isHeld = what === 'pause replay' || what === 'cancel paused replay';
  if (isHeld) await holdEndpoint(tools, wabaId, { id, mode: 'paused', reason: '' });
  const deliveryIds = settled.map(({ deliveryId }) => publicDeliveryId(deliveryId));
  const { replayId } = await startReplay(tools, wabaId, { deliveryIds }, 'test');
  const replay = { wabaId, replayId, cancelled: false };
  world.replays.push(replay);
  await queuePages(world);
  if (what === 'replay') return;
  if (what === 'pause attempted replay') return await pauseAttempted(world, replay);
  await switchReplay(world, replay, 'paused');
  if (what === 'cancel paused replay') await switchReplay(world, replay, 'cancelled');
  await enableEndpoint(tools, wabaId, { id, waiting: 'send', by: 'a test' });
}

/** Deliveries of one endpoint, so that several stand in each lane of a replay; waits for some. */
async function settledOf({ database }: World): Promise<{ id: string; wabaId: string; deliveryId: string }[]> {
  for (let look = 1; look < LOOKS; look += 1) {
    const settled = await query<{ id: string; wabaId: string; deliveryId: string }>(
      database,
      `with settled as (
         select * from deliveries d where state in ('delivered', 'failed') and replay_id is null
            and exists (select from webhook_endpoints e where e.id = d.endpoint_id))
       select endpoint_id as id, waba_id as "wabaId", id as "deliveryId" from settled
        where endpoint_id = (select endpoint_id from settled group by endpoint_id having count(*) > 4 order by random() limit 1)
        limit 20`,
    );
    if (settled.length > 0) return settled;
    await sleep(LOOK_MS);
  }
  return [];
}

/** Pauses a replay while the head of a lane is being attempted, if any is due soon: replays come after first attempts. */
async function pauseAttempted(world: World, replay: World['replays'][number]): Promise<void> {
  const { database, dice } = world;
  for (let look = 1; look < LOOKS; look += 1) {
    const [head] = await query<{ deliveryId: string; deliveryDay: string }>(
      database,
      `select h.delivery_id as "deliveryId", h.delivery_day as "deliveryDay"
         from delivery_queue h join delivery_queue b on b.endpoint_id = h.endpoint_id and b.lane = h.lane and b.state = 'queued'
        where h.state = 'due' and h.lane like 'replay/' || :replayId || '/%' limit 1`,
      replay,
    );
    const run = { ...newRun(dice), fate: 'works' as const, leaseMs: LONG_MS };
    const one = head === undefined ? null : await claimOne(database, { ...head, ...run });
    if (one?.kind === 'claimed') {
      await switchReplay(world, replay, 'paused');
      return await carry(world, [one.delivery], run);
    }
    await sleep(LOOK_MS);
  }
}

/** On a busy machine a row may be locked for longer than anybody waits: users repeat their request then, and workflows their step. */
async function whileLocked<T>(step: () => Promise<T>): Promise<T> {
  return await retryBriefly(step, [100, 1_000, 5_000], { mayPass: isLockTimeout });
}

async function switchReplay(
  { database, dropped }: World,
  replay: World['replays'][number],
  state: 'paused' | 'running' | 'cancelled',
): Promise<void> {
  replay.cancelled ||= state === 'cancelled';
  if (replay.cancelled) dropped.add(`replay ${replay.replayId}`);
  await whileLocked(() => changeReplay(database, replay, state));
}

/** Does what the workflows of the replays do: queues pages, and repeats what a pause or a cancel left. */
export async function queuePages({ database, replays }: World): Promise<void> {
  for (const replay of replays) {
    const { cursor } = (await findReplay(database, replay.wabaId, replay.replayId)) ?? {
      cursor: { endpoints: [] },
    };
    for (const { id } of cursor.endpoints)
      await whileLocked(() => queueReplayPage(database, { ...replay, endpointId: id }));
    await whileLocked(() => settleReplay(database, replay));
  }
}

/** Lets everything go on that somebody stopped, until the queue is empty. */
export async function resumeAll(world: World): Promise<void> {
  const { database, replays } = world;
  while (await releaseOne(world));
  await execute(
    database,
    `update endpoint_health set mode = 'open', next_probe_at = null
      where endpoint_id = any (array(select endpoint_id from endpoint_health where mode <> 'open' order by endpoint_id for no key update))`,
  );
  for (const replay of replays)
    if (!replay.cancelled) await whileLocked(() => changeReplay(database, replay, 'running'));
  await queuePages(world);
}
