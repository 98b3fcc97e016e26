import { sealedSecret } from '../../platform/crypto/sealed-secret.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query, queryOne, queryOnly, queryValue } from '../../platform/postgres/sql.ts';

export const HOOK_SECRET = sealedSecret({
  table: 'operations_hooks',
  id: ['ref', 'text'],
  secret: 'secret',
  rotates: true,
});

/** A tenant whose event was not accepted, or that has many: it waits with those behind it, while other tenants' events go on. */
export type HeldTenant = {
  /** Null: events of the installation. */
  userId: number | null;
  /** Everything of the tenant up to this place was delivered. */
  position: string;
  failures: number;
  /** Null: it waits for its turn alone. */
  failingSince: string | null;
  dueAt: string;
};

/** What may be shown of a hook: never its secrets. */
export type StoredHook = {
  ref: string;
  url: string;
  types: string[];
  description: string;
  /** Everything up to this place of the feed was delivered. */
  position: string;
  isEnabled: boolean;
  /** Why it was disabled by itself; null: it is enabled, or a program disabled it. */
  disabledReason: string | null;
  isTestPending: boolean;
  previousSecretEndsAt: Date | null;
  failingSince: Date | null;
  /** Null: no attempt waits. */
  nextAttemptAt: Date | null;
  lastError: string | null;
  lastErrorAt: Date | null;
  lastSuccessAt: Date | null;
  createdAt: Date;
};

/** Of the tenants that are held, the one where something is least. */
const leastHeld = (member: string, type: string) =>
  `(select min(cast(h ->> '${member}' as ${type})) from jsonb_array_elements(held) as h)`;

const SHOWN = `ref, url, types, description, least(position, ${leastHeld('position', 'bigint')})::text as position,
  disabled_at is null as "isEnabled", disabled_reason as "disabledReason", test_id is not null as "isTestPending",
  case when previous_ends_at > now() then previous_ends_at end as "previousSecretEndsAt",
  least(failing_since, ${leastHeld('failingSince', 'timestamptz')}) as "failingSince",
  case when disabled_at is null then
    case when failures > 0 and lease is null then due_at else ${leastHeld('dueAt', 'timestamptz')} end end as "nextAttemptAt",
  last_error as "lastError", last_error_at as "lastErrorAt", last_success_at as "lastSuccessAt", created_at as "createdAt"`;

export async function listHooks(database: Database): Promise<StoredHook[]> {
  return await query<StoredHook>(database, `select ${SHOWN} from operations_hooks order by ref`);
}

export async function findHook(database: Database, ref: string): Promise<StoredHook | null> {
  return await queryOne<StoredHook>(database, `select ${SHOWN} from operations_hooks where ref = :ref`, {
    ref,
  });
}

/** One change of hooks at a time, so that equal requests make one and their number is bounded. */
export async function lockHooks(trx: Transaction): Promise<void> {
  await query(trx, `select pg_advisory_xact_lock(hashtextextended('operations hooks', 0))`);
}

export type HookValues = Pick<StoredHook, 'url' | 'types' | 'description' | 'isEnabled'>;

/** It gets the events from now on. */
export async function insertHook(
  trx: Transaction,
  hook: HookValues & { ref: string; secretSealed: string },
): Promise<void> {
  await execute(
    trx,
    `insert into operations_hooks (ref, url, types, description, secret_sealed, position, disabled_at)
     select :ref, :url, :types, :description, :secretSealed, coalesce(max(position), 0),
            case when not cast(:isEnabled as boolean) then now() end
       from audit_chain`,
    hook,
  );
}

/** An attempt under way no longer counts, and the next one is made at once. */
export async function updateHook(trx: Transaction, hook: HookValues & { ref: string }): Promise<void> {
  await execute(
    trx,
    `update operations_hooks
        set url = :url, types = :types, description = :description, due_at = now(), lease = null,
            failures = 0, failing_since = null,
            held = (select coalesce(jsonb_agg(h || jsonb_build_object('dueAt', now(), 'failures', 0)), '[]')
                      from jsonb_array_elements(held) as h),
            disabled_at = case when cast(:isEnabled as boolean) then null else coalesce(disabled_at, now()) end,
            disabled_reason = case when not cast(:isEnabled as boolean) then disabled_reason end
      where ref = :ref`,
    hook,
  );
}

/** Until when the secret before signs too; null: it has ended. */
export async function replaceHookSecret(
  trx: Transaction,
  secret: { ref: string; sealed: string; overlapHours: number },
): Promise<Date | null> {
  return await queryValue<Date>(
    trx,
    `update operations_hooks
        set secret_sealed = :sealed,
            previous_secret_sealed = case when :overlapHours > 0 then secret_sealed end,
            previous_ends_at = case when :overlapHours > 0 then now() + :overlapHours * interval '1 hour' end
      where ref = :ref returning previous_ends_at`,
    secret,
  );
}

export async function requestTest(trx: Transaction, ref: string, testId: string): Promise<void> {
  const text = 'update operations_hooks set test_id = coalesce(test_id, :testId) where ref = :ref';
  await execute(trx, text, { ref, testId });
}

export async function removeHook(trx: Transaction, ref: string): Promise<void> {
  await execute(trx, 'delete from operations_hooks where ref = :ref', { ref });
}

/** A hook for one worker, until its lease ends. */
export type ClaimedHook = {
  ref: string;
  url: string;
  types: string[];
  position: string;
  held: HeldTenant[];
  isEnabled: boolean;
  testId: string | null;
  /** Above 0: it was claimed for its test event alone. */
  dueInMs: number;
  failures: number;
  failingSince: Date | null;
  lease: string;
  /** The newest first. */
  sealedSecrets: string[];
};

const IS_DUE = `(due_at <= (select clock_timestamp()) and disabled_at is null
    and (position < (select coalesce(max(position), 0) from audit_chain)
         or ${leastHeld('dueAt', 'timestamptz')} <= (select clock_timestamp())))
  or (test_id is not null and (lease is null or due_at <= (select clock_timestamp())))`;

/** SQL: whether a hook is due and something waits for it. */
export const HAS_HOOK = `exists (select from operations_hooks where ${IS_DUE})`;

/** The hooks that are due and for which something waits. */
export async function claimHooks(database: Database, leaseMs: number): Promise<ClaimedHook[]> {
  return await query<ClaimedHook>(
    database,
    `update operations_hooks h set lease = gen_random_uuid(), due_at = clock_timestamp() + :leaseMs * interval '1 ms'
       from (select ref, greatest(0, extract(epoch from due_at - clock_timestamp()) * 1000) as due_in_ms
               from operations_hooks
              where ${IS_DUE}
                for update skip locked) as due
      where h.ref = due.ref
     returning h.ref, h.url, h.types, h.position::text, h.held, h.disabled_at is null as "isEnabled", h.test_id as "testId",
               due.due_in_ms::double precision as "dueInMs", h.failures, h.failing_since as "failingSince", h.lease,
               array_remove(array[h.secret_sealed, case when h.previous_ends_at > now() then h.previous_secret_sealed end],
                            null) as "sealedSecrets"`,
    { leaseMs },
  );
}

type Held = Pick<ClaimedHook, 'ref' | 'lease'>;

/**
 * Everything up to `position` was delivered, is none of its events, or is of a tenant that is held; the lease goes on. False: the
 * hook was changed or is held by another worker, and nothing was noted.
 */
export async function noteProgress(
  database: Database,
  { ref, lease, position, held }: Held & Pick<ClaimedHook, 'position' | 'held'>,
  { outcome, leaseMs }: { outcome: 'delivered' | { error: string } | null; leaseMs: number },
): Promise<boolean> {
  const error = typeof outcome === 'object' ? outcome?.error : undefined;
  const change =
    outcome === 'delivered'
      ? ', failures = 0, failing_since = null, last_success_at = now()'
      : ', failing_since = coalesce(failing_since, now()), last_error = :error, last_error_at = now()';
  const rows = await execute(
    database,
    `update operations_hooks
        set position = greatest(position, cast(:position as bigint)), held = cast(:held as jsonb),
            due_at = clock_timestamp() + :leaseMs * interval '1 ms' ${outcome === null ? '' : change}
      where ref = :ref and lease = :lease`,
    { ref, lease, position, leaseMs, held: JSON.stringify(held), ...(error !== undefined && { error }) },
  );
  return rows > 0;
}

/** The next attempt is made after `delayMs`; null: the hook is disabled. False: as in `noteProgress`. */
export async function noteFailed(
  trx: Transaction,
  { ref, lease }: Held,
  { error, delayMs, isCounted }: { error: string; delayMs: number | null; isCounted: boolean },
): Promise<boolean> {
  const rows = await execute(
    trx,
    `update operations_hooks
        set lease = null, due_at = clock_timestamp() + coalesce(:delayMs, 0) * interval '1 ms',
            last_error = :error, last_error_at = now()
            ${isCounted ? ', failures = failures + 1, failing_since = coalesce(failing_since, now())' : ''}
            ${delayMs === null ? ', disabled_at = now(), disabled_reason = :error' : ''}
      where ref = :ref and lease = :lease`,
    { ref, lease, error, delayMs },
  );
  return rows > 0;
}

/** A test event was attempted once; it says nothing about the others. */
export async function noteTested(
  database: Database,
  { ref, testId }: { ref: string; testId: string },
  error: string | null,
): Promise<void> {
  const outcome = error === null ? 'last_success_at = now()' : 'last_error = :error, last_error_at = now()';
  await execute(
    database,
    `update operations_hooks set test_id = null, ${outcome} where ref = :ref and test_id = :testId`,
    { ref, testId, ...(error !== null && { error }) },
  );
}

/** What is left goes on at once, or at the time at which it was to be tried again. */
export async function releaseHook(database: Database, { ref, lease }: Held, dueInMs: number): Promise<void> {
  await execute(
    database,
    `update operations_hooks set lease = null, due_at = clock_timestamp() + :dueInMs * interval '1 ms'
      where ref = :ref and lease = :lease`,
    { ref, lease, dueInMs },
  );
}

const FAILING_MINUTES = 15;

/** Hooks whose events have waited for a while because of failures, and those that were disabled by themselves. */
export async function listFailingHooks(
  database: Database,
): Promise<{ ref: string; lastError: string; isDisabled: boolean }[]> {
  return await query(
    database,
    `select ref, coalesce(disabled_reason, last_error) as "lastError", disabled_at is not null as "isDisabled"
       from operations_hooks
      where disabled_reason is not null
         or (disabled_at is null
             and least(failing_since, ${leastHeld('failingSince', 'timestamptz')}) < now() - ${FAILING_MINUTES} * interval '1 minute')
      order by ref`,
  );
}

/** Whether more hooks may be made. */
export async function countHooks(database: Database): Promise<number> {
  return (await queryOnly<{ n: number }>(database, 'select count(*)::integer as n from operations_hooks')).n;
}
