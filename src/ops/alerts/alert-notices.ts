import type { ErasedTable } from '../../platform/erasing.ts';
import { shownUrl, type TargetLists } from '../../platform/http/outbound-url.ts';
import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query, queryOne } from '../../platform/postgres/sql.ts';
import { publicAlertId, uuidV7 } from '../../platform/public-ids.ts';
import {
  type AlertEnvelope,
  type EndpointNotice,
  MAX_WAITING,
  type NoticeKind,
  type NoticeState,
  serializeAlert,
} from './alert-envelope.ts';

export type NewNotice = {
  wabaId: string;
  /** Null: it is about no endpoint. */
  endpointId: string | null;
  alert: NoticeKind;
  /** Given where it is sent again, and at its end. */
  state?: NoticeState;
  /** Public: tenants read it. */
  reason: string | null;
  /** More for programs to read, public as well. */
  details?: AlertEnvelope['details'];
  /** As it was when it happened, where that is not now. */
  asOf?: { mode: string; modeReason: string | null; at: Date };
};

const NOWHERE_TO_SEND = 'the WABA had no operations URL';

/**
 * Sent when the WABA has an operations URL; without one, only those about endpoints are kept. Returns the id of the notice;
 * null when there is none, as where the WABA has no such endpoint.
 */
export async function insertNotice(trx: Transaction, notice: NewNotice): Promise<string | null> {
  const { wabaId, endpointId, alert, state, reason, details = {}, asOf } = notice;
  const about = await findSubject(trx, notice);
  if (about === null) return null;
  const { hasOperationsUrl, ...subject } = about;
  const occurredAt = asOf?.at ?? new Date();
  const uuid = uuidV7(occurredAt.getTime());
  const alertId = publicAlertId(uuid);
  const body = serializeAlert({ alertId, alert, state, occurredAt, wabaId, reason, details, ...subject });
  await execute(
    trx,
    `insert into alert_notices (id, waba_id, endpoint_id, alert, body, created_at, given_up_at, last_error)
     values (:uuid, :wabaId, :endpointId, :alert, :body, :occurredAt, :givenUpAt, :lastError)`,
    {
      uuid,
      wabaId,
      endpointId,
      alert,
      body: Buffer.from(body),
      occurredAt,
      givenUpAt: hasOperationsUrl ? null : occurredAt,
      lastError: hasOperationsUrl ? null : NOWHERE_TO_SEND,
    },
  );
  return uuid;
}

type Subject = Pick<AlertEnvelope, 'userId' | 'waiting' | 'endpoint'> & { hasOperationsUrl: boolean };

async function findSubject(trx: Transaction, notice: NewNotice): Promise<Subject | null> {
  const { wabaId, endpointId, asOf } = notice;
  if (endpointId === null) {
    const text = `select tenant_id as "userId", true as "hasOperationsUrl" from wabas
      where waba_id = :wabaId and operations_url is not null`;
    return await queryOne<Subject>(trx, text, { wabaId });
  }
  const found = await findEndpointSubject(trx, wabaId, endpointId);
  if (found === null) return null;
  const { userId, hasOperationsUrl, waiting, url, description } = found;
  const { mode, modeReason } = asOf ?? found;
  const endpoint = { id: endpointId, url: shownUrl(url), description, mode, modeReason };
  return { userId, hasOperationsUrl, waiting, endpoint };
}

type EndpointSubject = {
  userId: string;
  hasOperationsUrl: boolean;
  waiting: number;
  url: string;
  description: string;
  mode: string;
  modeReason: string | null;
};

/** Heads and those behind them are counted apart, because each has its own index. */
async function findEndpointSubject(
  trx: Transaction,
  wabaId: string,
  endpointId: string,
): Promise<EndpointSubject | null> {
  return await queryOne<EndpointSubject>(
    trx,
    `select e.url, e.description, s.mode, s.mode_reason as "modeReason", w.tenant_id as "userId",
            w.operations_url is not null as "hasOperationsUrl",
            cast(least(heads.n + behind.n, cast(:max as integer)) as integer) as waiting
       from webhook_endpoints e join endpoint_health s on s.endpoint_id = e.id join wabas w using (waba_id)
      cross join lateral (select count(*) as n from (select 1 from delivery_queue
         where endpoint_id = e.id and state <> 'queued' limit :max) as h) as heads
      cross join lateral (select count(*) as n from (select 1 from delivery_queue
         where endpoint_id = e.id and state = 'queued' limit :max) as b) as behind
      where e.waba_id = :wabaId and e.id = :endpointId`,
    { wabaId, endpointId, max: MAX_WAITING },
  );
}

/** A notice for one worker, until its lease ends. */
export type ClaimedNotice = {
  uuid: string;
  wabaId: string;
  alert: NoticeKind;
  body: Buffer;
  attempts: number;
};

/** Requests of a WABA, and of all in a process: each that hangs keeps a socket for as long as an answer may take. */
const MOST_AT_ONCE = { ofWaba: 8, ofAll: 1_000 };

/** What is due, a few of each WABA, and none of those that are busy: one URL that hangs holds up no other. */
export async function claimNotices(
  database: Database,
  { leaseMs, busy }: { leaseMs: number; busy: readonly string[] },
): Promise<ClaimedNotice[]> {
  return await query<ClaimedNotice>(
    database,
    `with due as materialized (
       select id from alert_notices join (
         select id, row_number() over (partition by waba_id order by due_at, id) as place from alert_notices
          where ${IS_DUE} and waba_id <> all (cast(:busy as text[]))) as placed using (id)
        where place <= :ofWaba and ${IS_DUE}
        order by place, due_at limit greatest(0, :ofAll - :ofWaba * cardinality(cast(:busy as text[])))
          for update of alert_notices skip locked)
     update alert_notices a set due_at = clock_timestamp() + :leaseMs * interval '1 ms'
       from due where a.id = due.id
     returning a.id as uuid, a.waba_id as "wabaId", a.alert, a.body, a.attempts`,
    { leaseMs, busy, ...MOST_AT_ONCE },
  );
}

/** Where the notices of a WABA go; `endpointUrls` are those of its webhook endpoints. */
export type NoticeTarget = TargetLists & {
  wabaId: string;
  operationsUrl: string | null;
  secretSealed: string | null;
  endpointUrls: string[];
};

export async function noticeTargets(database: Database, wabaIds: readonly string[]): Promise<NoticeTarget[]> {
  return await query<NoticeTarget>(
    database,
    `select w.waba_id as "wabaId", w.operations_url as "operationsUrl", w.operations_secret_sealed as "secretSealed",
            w.webhook_allow as allow, w.webhook_deny as deny,
            array(select url from webhook_endpoints e where e.waba_id = w.waba_id) as "endpointUrls"
       from wabas w where w.waba_id = any (cast(:wabaIds as text[]))`,
    { wabaIds },
  );
}

const IS_DUE = 'delivered_at is null and given_up_at is null and due_at <= (select clock_timestamp())';

/** SQL: whether a notice is due. */
export const HAS_NOTICE = `exists (select from alert_notices where ${IS_DUE})`;

/** What came of an attempt; `attempted`: a request was made. What is settled stays as it is. */
export type NoticeOutcome = { attempted: boolean; error: string | null } & (
  | { state: 'delivered' | 'given_up' }
  | { state: 'waiting'; delayMs: number }
);

export async function recordNotices(
  database: Database,
  outcomes: readonly (NoticeOutcome & { uuid: string })[],
): Promise<void> {
  const rows = outcomes.map((outcome) => ({
    ...outcome,
    made: outcome.attempted ? 1 : 0,
    delayMs: outcome.state === 'waiting' ? outcome.delayMs : 0,
  }));
  await execute(
    database,
    `update alert_notices a
        set attempts = a.attempts + o.made, last_error = o.error,
            delivered_at = case when o.state = 'delivered' then clock_timestamp() end,
            given_up_at = case when o.state = 'given_up' then clock_timestamp() end,
            due_at = case when o.state = 'waiting' then clock_timestamp() + o.delay_ms * interval '1 ms' else a.due_at end
       from unnest(cast(:uuid as uuid[]), cast(:state as text[]), cast(:made as integer[]), cast(:error as text[]),
                   cast(:delayMs as double precision[])) as o (id, state, made, error, delay_ms)
      where a.id = o.id and a.delivered_at is null and a.given_up_at is null`,
    columnsOf(rows, 'uuid', 'state', 'made', 'error', 'delayMs'),
  );
}

export type ListedAlert = {
  uuid: string;
  endpointId: string;
  isEndpointDeleted: boolean;
  alert: EndpointNotice;
  attempts: number;
  lastError: string | null;
  createdAt: Date;
  deliveredAt: Date | null;
  givenUpAt: Date | null;
};

/** Where an alert stands in the list: its time as ISO 8601, and its id. Times are those of this process, in whole ms. */
export type AlertPosition = { createdAt: string; uuid: string };

/** The newest alerts about endpoints of a WABA, or those before one, also those that were sent nowhere. */
export async function listEndpointAlerts(
  database: Database,
  wabaId: string,
  { before, limit }: { before: AlertPosition | null; limit: number },
): Promise<ListedAlert[]> {
  return await query<ListedAlert>(
    database,
    `select a.id as uuid, a.endpoint_id as "endpointId", e.id is null as "isEndpointDeleted", a.alert, a.attempts,
            a.last_error as "lastError", a.created_at as "createdAt", a.delivered_at as "deliveredAt",
            a.given_up_at as "givenUpAt"
       from alert_notices a left join webhook_endpoints e on e.id = a.endpoint_id and e.waba_id = a.waba_id
      where a.waba_id = :wabaId and a.endpoint_id is not null
            ${before === null ? '' : 'and (a.created_at, a.id) < (cast(:createdAt as timestamptz), cast(:uuid as uuid))'}
      order by a.created_at desc, a.id desc limit :limit`,
    { wabaId, limit, ...(before ?? {}) },
  );
}

export const ALERT_NOTICES: ErasedTable = { table: 'alert_notices', count: 'alertNotices', key: 'id' };
