import { randomUUID } from 'node:crypto';
import { USER_AGENT } from '../../platform/http/user-agent.ts';
import { byteaArray, columnsOf, textArray } from '../../platform/postgres/arrays.ts';
import { type Database, type Transaction, undone } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import { dayOfUuidV7 } from '../../platform/public-ids.ts';
import type { PhaseTimings } from '../../platform/sender/phase-timings.ts';
import { CLAIMED, type ClaimedDelivery, RUN_PREFIX } from './claim.ts';
import { rowIs } from './states.ts';

export type Claim = { deliveryId: string; token: string };

/**
 * A claim that is in force; `scheduledInMs`: its retry was brought forward, and would be due after this time; `batch`: the deliveries that go
 * out with it, itself the first.
 */
export type ClaimInForce = { deliveryId: string; scheduledInMs: number | null; batch: string[] | null };

/**
 * Of these claims those that are still ours, by delivery: the lease of the others ended and another process took over, so
 * nothing about them may be recorded. It takes no lock: settleDeliveries asks again, and passes over locked rows.
 */
export async function findClaims(
  database: Database,
  claims: readonly Claim[],
): Promise<Map<string, ClaimInForce>> {
  const rows = await query<ClaimInForce>(
    database,
    `select q.delivery_id as "deliveryId", cast(case when q.scheduled_at > (select clock_timestamp())
              then extract(epoch from q.scheduled_at - clock_timestamp()) * 1000 end as float8) as "scheduledInMs", q.batch
       from delivery_queue q
       join unnest(:deliveryId::uuid[], :token::uuid[]) as c (delivery_id, token) using (delivery_id, token)
      where ${rowIs('claimed', 'q')}`,
    columnsOf(claims, 'deliveryId', 'token'),
  );
  return new Map(rows.map((row) => [row.deliveryId, row]));
}

/**
 * A run of its workflow that shows a delivery: `room`: it counts towards the limits of runs; `extra`: beside them. One that is there
 * stays as it is, whatever is written.
 */
export type RunOfDelivery = 'room' | 'extra';

/**
 * Puts off a claim whose attempt was made and cannot be recorded. False: it is not ours any more, or another transaction
 * has locked it.
 */
export async function putOffClaim(
  database: Database,
  claim: Claim & { attempts: number; delayMs: number; run: RunOfDelivery | null },
): Promise<boolean> {
  const changed = await execute(
    database,
    `update delivery_queue q
        set state = 'retrying', token = null, lease_until = null, run = coalesce(q.run, :run), attempts = :attempts,
            next_attempt_at = clock_timestamp() + cast(:delayMs as float8) * interval '1 millisecond',
            scheduled_at = null, first_failed_at = coalesce(q.first_failed_at, clock_timestamp()),
            blocks = blocks_now(q.endpoint_id, q.lane, q.event_day, q.event_uuid)
      where q.ctid = any (array(select ctid from delivery_queue
                                 where delivery_id = cast(:deliveryId as uuid) and token = cast(:token as uuid)
                                   and ${rowIs('claimed')} for update skip locked))`,
    claim,
  );
  return changed === 1;
}

/** The facts that decide how a failed attempt goes on. */
export type RunRoom = {
  endpointId: string;
  mode: string;
  /** How many more runs that count this endpoint may have open. */
  freeRuns: number;
  /** Those that are open for all of its tenant, and for all tenants, counted up to one more than the limit. */
  openRunsOfTenant: number;
  openRunsOverall: number;
  /** Probes that failed since it was taken for down. */
  probeFailures: number;
  /** It is noted that deliveries wait because it is in trouble. */
  isInTrouble: boolean;
};

const ENDPOINT = `h.endpoint_id as "endpointId", h.mode, h.probe_failures as "probeFailures",
            h.has_backlog and h.backlog_due_at is null as "isInTrouble"`;

const WITHOUT_ROOM = `
  select ${ENDPOINT}, 0 as "freeRuns", 0 as "openRunsOfTenant", 0 as "openRunsOverall"
    from endpoint_health h where h.endpoint_id = any (cast(:endpointIds as bigint[]))`;

const WITH_ROOM = `
  with open as materialized (
    select endpoint_id from delivery_queue where run = 'room' limit cast(:overall as integer) + 1
  ), by_tenant as materialized (
    select a.tenant_id, count(*)::integer as n
      from open o join webhook_endpoints w on w.id = o.endpoint_id join wabas a on a.waba_id = w.waba_id
     group by a.tenant_id
  )
  select ${ENDPOINT}, cast(:perEndpoint as integer) - own.n as "freeRuns", coalesce(t.n, 0) as "openRunsOfTenant",
         (select count(*)::integer from open) as "openRunsOverall"
    from webhook_endpoints w
    join endpoint_health h on h.endpoint_id = w.id
    join wabas a on a.waba_id = w.waba_id
   cross join lateral (select count(*)::integer as n from (
     select 1 from delivery_queue where endpoint_id = w.id and run = 'room'
      limit cast(:perEndpoint as integer)) as r) as own
    left join by_tenant t on t.tenant_id = a.tenant_id
   where w.id = any (cast(:endpointIds as bigint[]))`;

/** The present mode of endpoints and how many runs are open beside them. Without limits no run is counted, and there is no room. */
export async function findRunRoom(
  trx: Transaction,
  endpointIds: readonly string[],
  limits: { perEndpoint: number; overall: number } | null,
): Promise<Map<string, RunRoom>> {
  const text = limits === null ? WITHOUT_ROOM : WITH_ROOM;
  const rows = await query<RunRoom>(trx, text, { ...limits, endpointIds });
  return new Map(rows.map((row) => [row.endpointId, row]));
}

/** The rows that are written of one attempt: the queue row, the attempt itself, and the delivery in the log. */
export type SettledDelivery = AttemptRecord & {
  deliveryId: string;
  deliveryDay: string;
  token: string;
  /** Null takes it out of the queue and promotes the next of its lane. */
  nextState: 'retrying' | 'due' | null;
  attempt: number;
  probes: number;
  delayMs: number | null;
  run: RunOfDelivery | null;
  logState: 'pending' | 'delivered' | 'failed';
  error: string | null;
  workflowId: string | null;
};

/** Claims the next of a lane while the one before it is settled. */
export type FollowerClaim = {
  token: string;
  leaseMs: number;
  /** The deliveries whose followers are wanted. */
  behind: ReadonlySet<string>;
};

/** The result of settling: which were recorded, how many others became due, which were claimed. */
export type Settled = {
  ours: Set<string>;
  promoted: number;
  followers: ClaimedDelivery[];
};

/**
 * Writes what came of attempts whose claims are still in force and whose rows no other transaction has locked, in one statement
 * (see the function settle_and_follow). Only a caller that commits at once may claim followers.
 */
export async function settleDeliveries(
  database: Database,
  settled: readonly SettledDelivery[],
  { worker, claim }: { worker: string; claim: FollowerClaim | null },
): Promise<Settled> {
  const rows = await query<SettledRow | ClaimedDelivery>(
    database,
    `select settled, promoted, ${CLAIMED}, false as "hasRun", true as "isFollowed" from settle_and_follow(
       :deliveryId, :token, :nextState, :attempt, :probes, :delayMs, :run, :logDays, :deliveryDay, :logState, :error,
       :workflowId, :wabaId, :endpointId, :startedAt, :totalMs, :dnsMs, :connectMs, :tlsMs, :firstByteMs, :reused, :statusCode,
       :errorClass, :errorMessage, :url, :remoteAddress, :customHeaders, :responseHeaders, :responseBodies, :worker,
       :runPrefix, :userAgent, :follows, :followToken, :leaseMs)`,
    {
      ...columnsOf(settled, 'deliveryId', 'token', 'nextState', 'attempt', 'probes', 'delayMs', 'run'),
      ...columnsOf(
        settled,
        'deliveryDay',
        'logState',
        'error',
        'workflowId',
        'wabaId',
        'endpointId',
        'startedAt',
      ),
      ...columnsOf(
        settled,
        'statusCode',
        'errorClass',
        'errorMessage',
        'url',
        'remoteAddress',
        'customHeaders',
      ),
      ...columnsOf(settled, 'totalMs', 'dnsMs', 'connectMs', 'tlsMs', 'firstByteMs', 'reused'),
      logDays: [...new Set(settled.map((s) => s.deliveryDay))],
      responseHeaders: textArray(settled.map((s) => s.responseHeadersJson)),
      responseBodies: byteaArray(settled.map((s) => s.responseBody)),
      worker,
      runPrefix: RUN_PREFIX,
      userAgent: USER_AGENT,
      follows: settled.map((s) => claim?.behind.has(s.deliveryId) ?? false),
      followToken: claim?.token ?? null,
      leaseMs: claim?.leaseMs ?? 0,
    },
  );
  return sortRows(rows);
}

/** Deliveries that went out with one that was settled by the same transaction, with the number of its attempt. */
export type SettledWith = { deliveryId: string; withId: string; attempt: number };

/** Writes into the log that others of a batch had the same attempt and stand as the first of them does. */
export async function settleWith(trx: Transaction, others: readonly SettledWith[]): Promise<void> {
  const days = (ids: readonly string[]) => [...new Set(ids.map(dayOfUuidV7))];
  await execute(
    trx,
    `with others as materialized (
       select * from unnest(:deliveryId::uuid[], :withId::uuid[], :attempt::integer[]) as o (id, with_id, made)
     ), logged as (
       update deliveries d
          set state = f.state, attempts = f.attempts, last_status_code = f.last_status_code, last_error = f.last_error,
              next_attempt_at = f.next_attempt_at, finished_at = f.finished_at, workflow_id = f.workflow_id
         from others o
         join deliveries f on f.id = o.with_id and f.id = any (:withId::uuid[]) and f.day = any (cast(:withDays as date[]))
        where d.id = o.id and d.id = any (:deliveryId::uuid[]) and d.day = any (cast(:days as date[]))
     )
     insert into attempts (${ATTEMPT_COLUMNS}, delivery_id)
     select ${ATTEMPT_COLUMNS}, o.id
       from others o
      cross join lateral (select * from attempts a where a.delivery_id = o.with_id and a.attempt = o.made
                           order by a.day desc limit 1) as f
     on conflict do nothing`,
    {
      ...columnsOf(others, 'deliveryId', 'withId', 'attempt'),
      days: days(others.map(({ deliveryId }) => deliveryId)),
      withDays: days(others.map(({ withId }) => withId)),
    },
  );
}

const ATTEMPT_COLUMNS = `attempt, waba_id, endpoint_id, started_at, duration_ms, dns_ms, connect_ms, tls_ms, first_byte_ms, reused,
  status_code, error_class, error_message, url, remote_address, user_agent, custom_headers, response_headers, response_body, worker`;

type SettledRow = { settled: string; promoted: number };

function sortRows(rows: readonly (SettledRow | ClaimedDelivery)[]): Settled {
  const sorted: Settled = { ours: new Set(), promoted: 0, followers: [] };
  for (const row of rows) {
    if ('settled' in row && row.settled !== null) {
      sorted.ours.add(row.settled);
      sorted.promoted = row.promoted;
    } else if ('deliveryId' in row) sorted.followers.push(row);
  }
  return sorted;
}

/** One attempt, as it is logged. A repeated number is the trace of an attempt that was cut off: the first stays. */
export type AttemptRecord = PhaseTimings & {
  wabaId: string;
  endpointId: string;
  startedAt: Date;
  statusCode: number | null;
  errorClass: string | null;
  errorMessage: string | null;
  url: string;
  remoteAddress: string | null;
  /** Names that the tenant added, with commas between them. */
  customHeaders: string | null;
  responseHeadersJson: string | null;
  responseBody: Buffer | null;
};

/** Between two looks whether attempts can be recorded again. */
const LOOK_MS = 1_000;

/** Shut while attempts cannot be recorded: what is sent then would be sent again with every lease. */
export type RecordGate = {
  isOpen(): boolean;
  /** After a record that failed: shuts the gate if nothing can be recorded, until something can. Returns isOpen. */
  check(): Promise<boolean>;
};

/**
 * Looks by writing what a record writes and undoing it, so nothing is sent to find out. `onOpen` is called when
 * recording works again, `onShut` with the reason when it does not.
 */
export function makeRecordGate(options: {
  database: Database;
  onShut: (error: unknown) => void;
  onOpen: () => void;
}): RecordGate {
  let open = true;
  let looking: Promise<boolean> | null = null;

  const look = async (): Promise<boolean> => {
    try {
      await checkRecording(options.database);
      if (!open) options.onOpen();
      open = true;
    } catch (error) {
      if (open) options.onShut(error);
      open = false;
      // Nothing has to be kept alive for it: a process that ends claims nothing more.
      setTimeout(() => void gate.check(), LOOK_MS).unref();
    }
    return open;
  };

  const gate: RecordGate = {
    isOpen: () => open,
    check: () => {
      looking ??= look().finally(() => {
        looking = null;
      });
      return looking;
    },
  };
  return gate;
}

/** Writes what recording an attempt writes and undoes it. Rejects with the reason when nothing can be recorded. */
async function checkRecording(database: Database): Promise<void> {
  await undone(database, async (trx) => {
    const id = randomUUID();
    await settleDeliveries(trx, [], { worker: '', claim: null });
    await execute(
      trx,
      `insert into deliveries (day, id, waba_id, endpoint_id, event_day, event_uuid)
       values (current_date, cast(:id as uuid), '', 0, current_date, cast(:id as uuid))`,
      { id },
    );
    await execute(
      trx,
      `update deliveries set state = 'delivered', attempts = 1, finished_at = clock_timestamp()
        where day = current_date and id = cast(:id as uuid)`,
      { id },
    );
    await execute(
      trx,
      `insert into attempts (delivery_id, attempt, waba_id, endpoint_id, started_at, duration_ms, reused, url,
                             user_agent, worker)
       values (cast(:id as uuid), 1, '', 0, now(), 0, false, '', '', '')`,
      { id },
    );
  });
}
