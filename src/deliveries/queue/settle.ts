import { randomUUID } from 'node:crypto';
import { type Database, type Transaction, undone } from '../../platform/postgres/database.ts';
import { byteaArray, execute, query, textArray } from '../../platform/postgres/sql.ts';
import type { ClaimedDelivery, Orphan } from './claim.ts';

export type Claim = { deliveryId: string; token: string };

/**
 * Locks the rows of these claims and returns the ids of those that are still ours: the lease of the others ended and
 * another process took over, so nothing about them may be recorded. Rows are locked in the order in which publishers
 * lock heads, so the two cannot deadlock.
 */
export async function lockClaims(trx: Transaction, claims: readonly Claim[]): Promise<Set<string>> {
  const rows = await query<{ delivery_id: string }>(
    trx,
    `select q.delivery_id from delivery_queue q
       join unnest(?::uuid[], ?::uuid[]) as c (delivery_id, token) using (delivery_id, token)
      where q.state = 'claimed' order by q.endpoint_id, q.lane for update of q`,
    [claims.map((claim) => claim.deliveryId), claims.map((claim) => claim.token)],
  );
  return new Set(rows.map((row) => row.delivery_id));
}

/** A delivery that stays in the queue after an attempt. */
export type KeptDelivery = {
  deliveryId: string;
  state: 'retrying' | 'due';
  attempts: number;
  probes: number;
  /** Until the next attempt; null for `due`. */
  delayMs: number | null;
  /** A workflow makes the next attempt; otherwise a delivery loop does. */
  byWorkflow: boolean;
};

/** Moves locked claims on to what waits for them. One that was not attempted has not failed. */
export async function keepDeliveries(trx: Transaction, kept: readonly KeptDelivery[]): Promise<void> {
  if (kept.length === 0) return;
  await execute(
    trx,
    `update delivery_queue q
        set state = k.state, token = null, lease_until = null, by_workflow = k.by_workflow, attempts = k.attempts,
            probes = k.probes,
            next_attempt_at = clock_timestamp() + k.delay_ms * interval '1 millisecond',
            first_failed_at = case when k.attempts > q.attempts
                                   then coalesce(q.first_failed_at, clock_timestamp()) else q.first_failed_at end
       from unnest(?::uuid[], ?::text[], ?::integer[], ?::integer[], ?::float8[], ?::boolean[])
              as k (delivery_id, state, attempts, probes, delay_ms, by_workflow)
      where q.delivery_id = k.delivery_id`,
    [
      kept.map((k) => k.deliveryId),
      kept.map((k) => k.state),
      kept.map((k) => k.attempts),
      kept.map((k) => k.probes),
      kept.map((k) => k.delayMs),
      kept.map((k) => k.byWorkflow),
    ],
  );
}

/** What decides how a failed attempt goes on. Retry workflows are counted up to one more than the limits. */
export type RetryRoom = {
  endpointId: string;
  mode: string;
  /** Retry workflows that are open for this endpoint, for all of its tenant, and for all tenants. */
  openRetries: number;
  openRetriesOfTenant: number;
  openRetriesOverall: number;
  /** Probes that failed since it was taken for down. */
  probeFailures: number;
};

/** The present mode of endpoints and how many retry workflows are open beside them. */
export async function findRetryRoom(
  trx: Transaction,
  endpointIds: readonly string[],
  limits: { perEndpoint: number; overall: number },
): Promise<Map<string, RetryRoom>> {
  const rows = await query<RetryRoom>(
    trx,
    `with open as materialized (
       select endpoint_id from delivery_queue where state = 'retrying' and by_workflow
        limit cast(:overall as integer) + 1
     ), by_tenant as materialized (
       select a.tenant_id, count(*)::integer as n
         from open o join webhook_endpoints w on w.id = o.endpoint_id join wabas a on a.waba_id = w.waba_id
        group by a.tenant_id
     )
     select w.id as "endpointId", w.mode, w.probe_failures as "probeFailures", own.n as "openRetries", coalesce(t.n, 0) as "openRetriesOfTenant",
            (select count(*)::integer from open) as "openRetriesOverall"
       from webhook_endpoints w
       join wabas a on a.waba_id = w.waba_id
      cross join lateral (select count(*)::integer as n from (
        select 1 from delivery_queue where endpoint_id = w.id and state = 'retrying' and by_workflow
         limit cast(:perEndpoint as integer) + 1) as r) as own
       left join by_tenant t on t.tenant_id = a.tenant_id
      where w.id = any (cast(:endpointIds as bigint[]))`,
    { perEndpoint: limits.perEndpoint, overall: limits.overall, endpointIds },
  );
  return new Map(rows.map((row) => [row.endpointId, row]));
}

/** What is written of one attempt: the queue row, the attempt itself, and the delivery in the log. */
export type SettledDelivery = {
  deliveryId: string;
  deliveryDay: string;
  token: string;
  /** Null takes it out of the queue and promotes the next of its lane. */
  nextState: KeptDelivery['state'] | null;
  attempt: number;
  probes: number;
  delayMs: number | null;
  byWorkflow: boolean;
  logState: 'pending' | 'delivered' | 'failed';
  error: string | null;
  workflowId: string | null;
  record: AttemptRecord;
};

/** Claims the next of a lane while the one before it is settled. */
export type FollowerClaim = {
  token: string;
  leaseMs: number;
  /** The deliveries whose followers are wanted. */
  behind: ReadonlySet<string>;
};

/** What came of settling: whose claims were in force, how many others became due, which were claimed. */
export type Settled = {
  ours: Set<string>;
  promoted: number;
  followers: ClaimedDelivery[];
  orphans: Orphan[];
};

/**
 * Writes what came of attempts whose claims are still in force, in one statement (see the function
 * settle_and_follow). Only a caller that commits at once may claim followers.
 */
export async function settleDeliveries(
  database: Database,
  settled: readonly SettledDelivery[],
  { worker, claim }: { worker: string; claim: FollowerClaim | null },
): Promise<Settled> {
  const rows = await query<SettledRow | ClaimedDelivery | Orphan>(
    database,
    `select settled, promoted, ${CLAIM_COLUMNS} from settle_and_follow(
       :ids, :tokens, :nextStates, :attempts, :probes, :delaysMs, :byWorkflow, :days, :logStates, :errors, :workflowIds,
       :wabaIds, :endpointIds, :started, :durationsMs, :timings, :statusCodes, :errorClasses, :errorMessages, :urls,
       :addresses, :requestHeaders, :responseHeaders, :responseBodies, :worker, :follows, :followToken, :leaseMs)`,
    {
      ids: settled.map((s) => s.deliveryId),
      tokens: settled.map((s) => s.token),
      nextStates: settled.map((s) => s.nextState),
      attempts: settled.map((s) => s.attempt),
      probes: settled.map((s) => s.probes),
      delaysMs: settled.map((s) => s.delayMs),
      byWorkflow: settled.map((s) => s.byWorkflow),
      days: settled.map((s) => s.deliveryDay),
      logStates: settled.map((s) => s.logState),
      errors: settled.map((s) => s.error),
      workflowIds: settled.map((s) => s.workflowId),
      ...recordColumns(settled.map((s) => s.record)),
      worker,
      follows: settled.map((s) => claim?.behind.has(s.deliveryId) ?? false),
      followToken: claim?.token ?? null,
      leaseMs: claim?.leaseMs ?? 0,
    },
  );
  return sortRows(rows);
}

type SettledRow = { settled: string; promoted: number };

const CLAIM_COLUMNS = `delivery_id as "deliveryId", delivery_day as "deliveryDay", endpoint_id as "endpointId",
     endpoint_version as "endpointVersion", event_day as "eventDay", event_uuid as "eventUuid", attempts, probes, replay,
     event_type as "eventType", event_id as "eventId", sequence, body`;

function sortRows(rows: readonly (SettledRow | ClaimedDelivery | Orphan)[]): Settled {
  const sorted: Settled = { ours: new Set(), promoted: 0, followers: [], orphans: [] };
  for (const row of rows) {
    if ('settled' in row && row.settled !== null) {
      sorted.ours.add(row.settled);
      sorted.promoted = row.promoted;
    } else if ('deliveryId' in row && row.body === null) sorted.orphans.push(row);
    else if ('deliveryId' in row) sorted.followers.push(row);
  }
  return sorted;
}

function recordColumns(records: readonly AttemptRecord[]) {
  return {
    wabaIds: records.map((r) => r.wabaId),
    endpointIds: records.map((r) => r.endpointId),
    started: records.map((r) => r.startedAt),
    durationsMs: records.map((r) => r.durationMs),
    timings: textArray(records.map((r) => r.timingsJson)),
    statusCodes: records.map((r) => r.statusCode),
    errorClasses: records.map((r) => r.errorClass),
    errorMessages: records.map((r) => r.errorMessage),
    urls: records.map((r) => r.url),
    addresses: records.map((r) => r.remoteAddress),
    requestHeaders: textArray(records.map((r) => r.requestHeadersJson)),
    responseHeaders: textArray(records.map((r) => r.responseHeadersJson)),
    responseBodies: byteaArray(records.map((r) => r.responseBody)),
  };
}

/** One attempt, as it is logged. A repeated number is the trace of an attempt that was cut off: the first stays. */
export type AttemptRecord = {
  wabaId: string;
  endpointId: string;
  startedAt: Date;
  durationMs: number;
  timingsJson: string;
  statusCode: number | null;
  errorClass: string | null;
  errorMessage: string | null;
  url: string;
  remoteAddress: string | null;
  requestHeadersJson: string;
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
      `insert into attempts (delivery_id, attempt, waba_id, endpoint_id, started_at, duration_ms, timings, url,
                             request_headers, worker)
       values (cast(:id as uuid), 1, '', 0, now(), 0, '{}', '', '{}', '')`,
      { id },
    );
  });
}
