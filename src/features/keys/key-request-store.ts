import type { NamedIn } from '../../platform/erasing.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query, queryColumn, queryOne, queryOnly, queryValue } from '../../platform/postgres/sql.ts';
import {
  finishTask,
  insertWorkflowTasks,
  type TaskKind,
  wakeTask,
} from '../../platform/temporal/workflow-tasks.ts';
import type { ApiKeyScope } from './api-key.ts';
import type { SendLimits } from './send-limits.ts';

/** `requested` and `approved` are open; the others are final. `expired`: not decided, or not revealed, in time. */
export type KeyRequestState = 'requested' | 'approved' | 'denied' | 'expired' | 'revealed' | 'withdrawn';

export type NewKeyRequest = SendLimits & {
  tenantId: string;
  wabaId: string;
  requesterId: string;
  requester: string;
  /** What the key is for; it becomes its name. */
  purpose: string;
  scopes: readonly ApiKeyScope[];
  /** How long the key is to work from the reveal on, in days; null: until it is revoked. */
  validDays: number | null;
  replacesKeyId: string | null;
  /** How long the replaced key works on after the reveal, in hours; null: until it is revoked. */
  overlapHours: number | null;
  /** Networks that the key may be used from; null: anywhere. */
  allowedNetworks: readonly string[] | null;
};

export type KeyRequest = Omit<NewKeyRequest, 'scopes'> & {
  id: string;
  scopes: ApiKeyScope[];
  businessName: string;
  /** As it is now, also when its end has not been stored yet. */
  state: KeyRequestState;
  createdAt: Date;
  decideUntil: Date;
  reminders: number;
  decidedBy: string | null;
  decidedAt: Date | null;
  note: string | null;
  revealUntil: Date | null;
  revealedBy: string | null;
  apiKeyId: string | null;
  finishedAt: Date | null;
};

const IS_OVERDUE = `((r.state = 'requested' and r.decide_until <= now())
  or (r.state = 'approved' and r.reveal_until <= now()))`;

const REQUEST = `r.id, r.tenant_id as "tenantId", r.waba_id as "wabaId", t.business_name as "businessName",
  r.requester_id as "requesterId", r.requester, r.purpose, r.scopes, r.valid_days as "validDays",
  r.replaces_key_id as "replacesKeyId", r.overlap_hours as "overlapHours",
  r.allowed_networks as "allowedNetworks", r.max_messages_per_day as "maxMessagesPerDay", r.recipients,
  case when ${IS_OVERDUE} then 'expired' else r.state end as state,
  r.created_at as "createdAt", r.decide_until as "decideUntil", r.reminders, r.decided_by as "decidedBy",
  r.decided_at as "decidedAt", r.note, r.reveal_until as "revealUntil", r.revealed_by as "revealedBy",
  r.api_key_id as "apiKeyId", r.finished_at as "finishedAt"`;

const FROM = 'from api_key_requests r join tenants t on t.id = r.tenant_id';

export function keyRequestWorkflowId(requestId: string): string {
  return `api-key-request/${requestId}`;
}

export const APPROVE_API_KEY: TaskKind = {
  workflowType: 'approveApiKey',
  summary: 'a request for an API key',
  isSignalled: true,
};

/** Stores a request with the task that starts its workflow; `summary` is for the Temporal UI. Returns its id. */
export async function insertKeyRequest(
  trx: Transaction,
  request: NewKeyRequest,
  { decideWithinDays, summary }: { decideWithinDays: number; summary: string },
): Promise<string> {
  const row = await queryOnly<{ id: string }>(
    trx,
    `insert into api_key_requests (tenant_id, waba_id, requester_id, requester, purpose, scopes, valid_days,
                                   replaces_key_id, overlap_hours, allowed_networks, max_messages_per_day, recipients,
                                   decide_until)
     values (:tenantId, :wabaId, :requesterId, :requester, :purpose, :scopes, :validDays, :replacesKeyId,
             :overlapHours, cast(:allowedNetworks as text[]), :maxMessagesPerDay, :recipients, now() + :decideWithinDays * interval '1 day')
     returning id`,
    { ...request, decideWithinDays },
  );
  const { wabaId } = request;
  const workflowId = keyRequestWorkflowId(row.id);
  const task = { workflowId, kind: APPROVE_API_KEY, wabaId, eventId: workflowId, summary };
  await insertWorkflowTasks(trx, [{ ...task, argument: { wabaId, requestId: row.id } }]);
  return row.id;
}

/** How many requests of a WABA are open, how many of them are this requester's, and how many were made in 24 h. */
export async function countKeyRequests(
  database: Database,
  wabaId: string,
  requesterId: string,
): Promise<{ open: number; own: number; lastDay: number }> {
  return await queryOnly<{ open: number; own: number; lastDay: number }>(
    database,
    `select cast(count(*) filter (where state in ('requested', 'approved')) as integer) as open,
            cast(count(*) filter (where state in ('requested', 'approved') and requester_id = :requesterId)
              as integer) as own,
            cast(count(*) filter (where created_at > now() - interval '1 day') as integer) as "lastDay"
       from api_key_requests where waba_id = :wabaId`,
    { wabaId, requesterId },
  );
}

/** Holds back other requests for keys of the WABA until the transaction ends, so that they can be counted. */
export async function lockKeyRequestsOf(trx: Transaction, wabaId: string): Promise<void> {
  await query(
    trx,
    `select pg_advisory_xact_lock(hashtextextended('key requests ' || cast(:wabaId as text), 0))`,
    { wabaId },
  );
}

const ofWaba = (wabaId: string | null) => (wabaId === null ? 'true' : 'r.waba_id = :wabaId');

export async function findKeyRequest(
  database: Database,
  wabaId: string | null,
  id: string,
): Promise<KeyRequest | null> {
  const text = `select ${REQUEST} ${FROM} where ${ofWaba(wabaId)} and r.id = :id`;
  return await queryOne<KeyRequest>(database, text, { wabaId, id });
}

export async function lockKeyRequest(
  trx: Transaction,
  wabaId: string,
  id: string,
): Promise<KeyRequest | null> {
  const text = `select ${REQUEST} ${FROM} where r.waba_id = :wabaId and r.id = :id for update of r`;
  return await queryOne<KeyRequest>(trx, text, { wabaId, id });
}

export async function listKeyRequests(
  database: Database,
  wabaId: string | null,
  { beforeId, limit }: { beforeId: string | null; limit: number },
): Promise<KeyRequest[]> {
  return await query<KeyRequest>(
    database,
    `select ${REQUEST} ${FROM}
      where ${ofWaba(wabaId)} and (cast(:beforeId as bigint) is null or r.id < cast(:beforeId as bigint))
      order by r.id desc limit :limit`,
    { wabaId, beforeId, limit },
  );
}

/** For operators: what waits for a decision, of all tenants, the oldest first. */
export async function listWaitingKeyRequests(database: Database, limit: number): Promise<KeyRequest[]> {
  return await query<KeyRequest>(
    database,
    `select ${REQUEST} ${FROM} where r.state = 'requested' and r.decide_until > now() order by r.id limit :limit`,
    { limit },
  );
}

export async function listPastKeyRequests(
  database: Database,
  { beforeId, limit }: { beforeId: string | null; limit: number },
): Promise<KeyRequest[]> {
  return await query<KeyRequest>(
    database,
    `select ${REQUEST} ${FROM}
      where not (r.state = 'requested' and r.decide_until > now())
        and (cast(:beforeId as bigint) is null or r.id < cast(:beforeId as bigint))
      order by r.id desc limit :limit`,
    { beforeId, limit },
  );
}

export async function countUndecided(database: Database, most: number): Promise<number> {
  const text = `select count(*)::integer from (
       select from api_key_requests where state = 'requested' and decide_until > now() limit :most) as undecided`;
  return (await queryValue<number>(database, text, { most })) ?? 0;
}

export async function saveDecision(
  trx: Transaction,
  id: string,
  decision: SendLimits & {
    state: 'approved' | 'denied';
    by: string;
    note: string | null;
    revealWithinDays: number;
  },
): Promise<void> {
  await execute(
    trx,
    `update api_key_requests
        set state = :state, decided_by = :by, decided_at = now(), note = :note,
            max_messages_per_day = :maxMessagesPerDay, recipients = :recipients,
            reveal_until = case when :state = 'approved' then now() + :revealWithinDays * interval '1 day' end,
            finished_at = case when :state = 'denied' then now() end
      where id = :id`,
    { id, ...decision },
  );
  await wakeTask(trx, keyRequestWorkflowId(id));
}

export async function saveReveal(
  trx: Transaction,
  id: string,
  reveal: { apiKeyId: string; by: string },
): Promise<void> {
  await execute(
    trx,
    `update api_key_requests set state = 'revealed', revealed_by = :by, api_key_id = :apiKeyId, finished_at = now()
      where id = :id`,
    { by: reveal.by, apiKeyId: reveal.apiKeyId, id },
  );
  await wakeTask(trx, keyRequestWorkflowId(id));
}

export async function saveWithdrawal(trx: Transaction, id: string): Promise<void> {
  const text = `update api_key_requests set state = 'withdrawn', finished_at = now() where id = :id`;
  await execute(trx, text, { id });
  await wakeTask(trx, keyRequestWorkflowId(id));
}

/** Notes for requests of a WABA whose time is over that it is; returns them as they are now. */
export async function expireKeyRequests(trx: Transaction, wabaId: string): Promise<KeyRequest[]> {
  return await query<KeyRequest>(
    trx,
    `update api_key_requests r
        set state = 'expired', finished_at = case when r.state = 'requested' then decide_until else reveal_until end
       from tenants t
      where t.id = r.tenant_id and r.waba_id = :wabaId and ${IS_OVERDUE}
     returning ${REQUEST}`,
    { wabaId },
  );
}

export async function saveReminders(trx: Transaction, id: string, reminders: number): Promise<void> {
  await execute(trx, 'update api_key_requests set reminders = :reminders where id = :id', { reminders, id });
}

/** Ends the task of a request whose state is final: its workflow has nothing more to do. */
export async function finishKeyRequest(trx: Transaction, id: string): Promise<void> {
  await finishTask(trx, keyRequestWorkflowId(id));
}

/** Ends the keys of a WABA that is taken away, and denies the requests for some. */
export async function revokeKeysOfWaba(trx: Transaction, wabaId: string): Promise<void> {
  const text = 'update api_keys set revoked_at = now() where waba_id = :wabaId and revoked_at is null';
  await execute(trx, text, { wabaId });
  const ids = await queryColumn<string>(
    trx,
    `update api_key_requests set state = 'denied', note = 'the WABA was removed', finished_at = now()
      where waba_id = :wabaId and state in ('requested', 'approved') returning id`,
    { wabaId },
  );
  for (const id of ids) await wakeTask(trx, keyRequestWorkflowId(id));
}

export async function deleteKeysOfWaba(trx: Transaction, wabaId: string): Promise<void> {
  await execute(trx, 'delete from api_key_requests where waba_id = :wabaId', { wabaId });
  await execute(trx, 'delete from api_keys where waba_id = :wabaId', { wabaId });
}

export async function deleteKeyRequestsOfTenant(trx: Transaction, tenantId: string): Promise<void> {
  await execute(trx, 'delete from api_key_requests where tenant_id = :tenantId', { tenantId });
}

export async function renameRequester(trx: Transaction, userId: string, name: string): Promise<void> {
  await execute(trx, 'update api_key_requests set requester = :name where requester_id = :userId', {
    name,
    userId,
  });
}

export const KEYS_NAMED_IN: NamedIn = [
  ['api_key_requests', 'requester'],
  ['api_key_requests', 'decided_by'],
  ['api_key_requests', 'revealed_by'],
];
