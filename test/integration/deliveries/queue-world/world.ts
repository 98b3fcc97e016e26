import { makeEndpointHealth } from '../../../../src/engine/deliveries/breaker.ts';
import { EndpointLimiter } from '../../../../src/engine/deliveries/loop/attempt-limits.ts';
import type { LoopTools } from '../../../../src/engine/deliveries/loop/delivery-loop.ts';
import type { OrderScope } from '../../../../src/engine/endpoint/endpoint-settings.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { addEndpoint, testSecretBox } from '../../../support/test-accounts.ts';
import { clearDeliveries } from '../../replays/replay-fixtures.ts';
import { makeReceivers, type Receivers } from './receiver.ts';

export const WABAS = [
  { wabaId: '900000000000101', phoneNumberId: '800000000000111' },
  { wabaId: '900000000000202', phoneNumberId: '800000000000221' },
] as const;

/** An event as it was published: whom for, under which order scope each. */
export type PublishedOne = {
  uuid: string;
  key: string;
  conversationId: string | null;
  sequence: number;
  /** The number in its data, by which it is known in a batch. */
  n: number;
  /** Its place in its WABA's intake, which is one at a time; null: published beside it. */
  turn: number | null;
  subscribers: ReadonlyMap<string, OrderScope>;
};

/** From `fromMs` on deliveries of this endpoint may have gone by this scope. */
type ScopeChange = { endpointId: string; scope: OrderScope; fromMs: number; untilMs: number };

type AttemptTools = Omit<LoopTools, 'runs' | 'logger'>;

export type World = {
  database: Database;
  dice: () => number;
  tools: AttemptTools;
  receivers: Receivers;
  endpoints: { id: string; wabaId: string; url: string; removed: boolean }[];
  published: PublishedOne[];
  nextNumber: number;
  scopes: ScopeChange[];
  /** By endpoint, until they hold. */
  wantedScopes: Map<string, OrderScope>;
  replays: { wabaId: string; replayId: string; cancelled: boolean }[];
  /** What was dropped on purpose: ids of deliveries, endpoints and replays. */
  dropped: Set<string>;
  violations: string[];
  /** Runs what must not run side by side: the intakes of a WABA, changes of scopes. */
  inTurn<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** Attempts that nobody waits for until the end. */
  background: Promise<void>[];
  /** Reserved events that have no body yet. */
  reserved: { wabaId: string; day: string; uuid: string }[];
};

/** Four endpoints of two WABAs, nothing queued; every move of a row is noted. */
export async function makeWorld(database: Database, dice: () => number): Promise<World> {
  await clearDeliveries(database);
  await execute(database, 'delete from queue_moves');
  const receivers = makeReceivers(database, dice);
  const endpoints = await Promise.all(
    [0, 0, 1, 1].map(async (waba, n) => {
      const { wabaId } = WABAS[waba] ?? WABAS[0];
      const url = `https://e${n}.example/`;
      return { ...(await addEndpoint(database, wabaId, url)), wabaId, url, removed: false };
    }),
  );
  await execute(database, `update endpoint_health set mode_changed_at = now() - interval '1 day'`);
  const [, first, , second] = endpoints;
  await execute(database, `${SET_SCOPE} where id = any (cast(:ids as bigint[]))`, {
    scope: 'conversation',
    ids: [first?.id ?? '', second?.id ?? ''],
  });
  const turns = new Map<string, Promise<unknown>>();
  return {
    database,
    dice,
    receivers,
    endpoints,
    published: [],
    nextNumber: 1,
    scopes: [],
    wantedScopes: new Map(),
    replays: [],
    reserved: [],
    background: [],
    dropped: new Set(),
    violations: [],
    tools: attemptTools(database, dice, receivers),
    inTurn: (name, work) => {
      const mine = (turns.get(name) ?? Promise.resolve()).then(work, work);
      turns.set(name, mine);
      return mine;
    },
  };
}

/** Endpoints with the scope that buffering needs do buffer. */
export const SET_SCOPE = `update webhook_endpoints
  set order_scope = :scope, version = version + 1, buffer_seconds = case when :scope = 'conversation' then 1 end,
      buffer_max_messages = 3`;

function attemptTools(database: Database, dice: () => number, { sender }: Receivers): AttemptTools {
  return {
    database,
    sender,
    secretBox: testSecretBox,
    worker: 'test',
    limiter: new EndpointLimiter(),
    defaults: { retryScheduleMs: [4, 4, 4, 4], timeoutMs: 30_000, workflows: 'auto' as const },
    health: makeEndpointHealth(),
    runLimits: { perEndpoint: 5, overall: 10, mayStart: () => true, takeStart: () => dice() < 0.5 },
    gate: { isOpen: () => true, check: async () => true },
    onTrouble: (error) => {
      throw error;
    },
    onAttempt: () => undefined,
  };
}

/** Has the database note every change of a state, a claim or a lane. */
export async function noteMoves(database: Database): Promise<void> {
  await database.raw(`
    create unlogged table queue_moves (from_state text not null, to_state text not null);
    create function note_move() returns trigger language plpgsql as $$
    begin
      insert into queue_moves values (case tg_op when 'INSERT' then 'new' else old.state end,
                                      case tg_op when 'DELETE' then 'gone' else new.state end);
      return null;
    end $$;
    create trigger note_move after insert or delete on delivery_queue for each row execute function note_move();
    create trigger note_change after update on delivery_queue for each row
      when (old.state <> new.state or old.token is distinct from new.token or old.lane <> new.lane)
      execute function note_move();`);
}

/** Lanes whose rows are not one head, the oldest, and those behind it; heads whose state does not fit them. */
export async function look({ database, violations }: World): Promise<void> {
  const broken = await query<{ lane: string; rows: string }>(
    database,
    `select endpoint_id || ' ' || lane as lane, string_agg(state, ', ' order by position) as rows
       from delivery_queue group by endpoint_id, lane
     having count(*) filter (where state <> 'queued') <> 1
         or min(position) <> min(position) filter (where state <> 'queued')
         or bool_or(state in ('unreleased', 'suspended') and released)
         or bool_or(state in ('due', 'claimed') and not released)`,
  );
  for (const { lane, rows } of broken) violations.push(`lane ${lane} has ${rows}`);
}
