import { lockIntake } from '../../engine/inbox/intake-lock.ts';
import { shardOf } from '../../engine/inbox/shards.ts';
import {
  countWaitingBodies,
  refuseWaitingBodies,
  releaseWaitingBodies,
} from '../../engine/inbox/waiting-bodies.ts';
import { recordChange, SYSTEM } from '../../platform/audit/audit.ts';
import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query, queryOne, queryValue } from '../../platform/postgres/sql.ts';
import { finishAskedTask, insertChosenTasks, type TaskKind } from '../../platform/temporal/workflow-tasks.ts';
import type { PhoneNumber } from './accounts.ts';
import { upstreamPerSecond } from './number-pace.ts';

/** So long after upstream was asked for the numbers of a WABA it is not asked again for what comes by itself. */
const ASK_AGAIN_SECONDS = 60;

/** Within these hours after upstream was asked, the daily turn passes a WABA over. */
const FRESH_HOURS = 20;
const SPREAD_MINUTES = 30;

/** The workflow that looks up the numbers of a WABA; there is one at a time. */
export function numbersWorkflowId(wabaId: string): string {
  return `waba-numbers/${wabaId}`;
}

export const REFRESH_NUMBERS: TaskKind = {
  workflowType: 'refreshNumbers',
  summary: 'the phone numbers of a WABA',
  isSignalled: true,
};

/** SQL: tasks of WABAs (`w`) that are not removed. */
function lookUps(dueAt: string, which: string): string {
  return `select 'waba-numbers/' || w.waba_id, w.waba_id, jsonb_build_object('wabaId', w.waba_id), ${dueAt}
            from wabas w where w.removed_at is null and ${which}`;
}

const GIVEN = 'w.waba_id = any (:wabaIds::text[])';
const HAS_TOKEN = 'w.access_token_sealed is not null';
const SPREAD = `now() + random() * interval '${SPREAD_MINUTES} minutes'`;

function afterLastLookUp(seconds: number): string {
  return `greatest(now(), w.numbers_asked_at + interval '${seconds} seconds')`;
}

/** Has the numbers of WABAs looked up, unless that is under way; of unknown and removed ones nothing is asked. */
export async function askForNumbers(trx: Transaction, wabaIds: readonly string[]): Promise<void> {
  const chosen = lookUps(afterLastLookUp(ASK_AGAIN_SECONDS), GIVEN);
  await insertChosenTasks(trx, REFRESH_NUMBERS, { chosen }, { wabaIds });
}

/** As `askForNumbers`, and once more where it is under way: what upstream has to tell, or our token, changed. */
export async function askForNumbersAgain(
  trx: Transaction,
  wabaIds: readonly string[],
  { atOnce }: { atOnce: boolean },
): Promise<void> {
  const chosen = lookUps(afterLastLookUp(atOnce ? 0 : ASK_AGAIN_SECONDS), GIVEN);
  await insertChosenTasks(trx, REFRESH_NUMBERS, { chosen, again: true }, { wabaIds });
}

/** Has the numbers of all WABAs looked up that have an access token, spread over some time; returns of how many. */
export async function askForAllNumbers(database: Database): Promise<number> {
  const chosen = lookUps(
    SPREAD,
    `(${HAS_TOKEN} and coalesce(w.numbers_asked_at < now() - interval '${FRESH_HOURS} hours', true)
      or exists (select from waiting_bodies b where b.waba_id = w.waba_id and not b.refused))`,
  );
  return await insertChosenTasks(database, REFRESH_NUMBERS, { chosen });
}

/** As `askForAllNumbers`, however lately they were looked up: what is known of them may be old. */
export async function askForAllNumbersAnew(database: Database): Promise<number> {
  return await insertChosenTasks(database, REFRESH_NUMBERS, {
    chosen: lookUps(SPREAD, HAS_TOKEN),
    again: true,
  });
}

/** Notes that upstream is asked now; null: there is no such WABA any more. */
export async function beginNumberLookup(database: Database, wabaId: string): Promise<Date | null> {
  return await queryValue<Date>(
    database,
    `update wabas set numbers_asked_at = clock_timestamp() where waba_id = :wabaId and removed_at is null
     returning numbers_asked_at`,
    { wabaId },
  );
}

/** Notes what came in the way of the last look-up, for operators; null: nothing did. */
export async function saveNumbersProblem(
  database: Database,
  wabaId: string,
  problem: string | null,
): Promise<void> {
  await execute(database, 'update wabas set numbers_problem = :problem where waba_id = :wabaId', {
    problem,
    wabaId,
  });
}

/** A number as upstream lists it. */
type ListedNumber = PhoneNumber & { throughput?: string | null; isInApp?: boolean };

/** Leaves out those that an operator detached. `taken`: they belong to other WABAs, and stay there. */
async function saveFollowedNumbers(
  trx: Transaction,
  wabaId: string,
  numbers: readonly ListedNumber[],
): Promise<{ added: string[]; taken: string[] }> {
  const rows = await query<{ id: string; added: boolean; taken: boolean }>(
    trx,
    `with given as (
       select * from unnest(:phoneNumberId::text[], :displayPhoneNumber::text[], :verifiedName::text[], :qualityRating::text[], :pace::integer[]) as g (id, display, name, quality, pace)
     ), before as (
       select g.id, n.waba_id, n.removed_at, n.detached from given g left join phone_numbers n on n.phone_number_id = g.id
     ), saved as (
       insert into phone_numbers (phone_number_id, waba_id, display_phone_number, verified_name, quality_rating, upstream_per_second)
       select id, :wabaId, display, name, quality, pace from given
       on conflict (phone_number_id) do update
          set display_phone_number = excluded.display_phone_number, verified_name = excluded.verified_name,
              quality_rating = excluded.quality_rating, upstream_per_second = excluded.upstream_per_second, removed_at = null
        where phone_numbers.waba_id = excluded.waba_id and not phone_numbers.detached
     )
     select id, waba_id is null or removed_at is not null and not detached as added,
            coalesce(waba_id <> :wabaId, false) as taken
       from before order by id`,
    {
      ...columnsOf(numbers, 'phoneNumberId', 'displayPhoneNumber', 'verifiedName', 'qualityRating'),
      pace: numbers.map(({ throughput = null, isInApp = false }) => upstreamPerSecond(throughput, isInApp)),
      wabaId,
    },
  );
  return {
    added: rows.filter(({ added, taken }) => added && !taken).map(({ id }) => id),
    taken: rows.filter(({ taken }) => taken).map(({ id }) => id),
  };
}

async function removeOtherNumbers(
  trx: Transaction,
  wabaId: string,
  phoneNumberIds: readonly string[],
): Promise<string[]> {
  const rows = await query<{ id: string }>(
    trx,
    `update phone_numbers set removed_at = now()
      where waba_id = :wabaId and removed_at is null and phone_number_id <> all (:phoneNumberIds::text[])
     returning phone_number_id as id`,
    { wabaId, phoneNumberIds },
  );
  return rows.map(({ id }) => id).sort();
}

/** A WABA whose numbers cannot be looked up, or for whose numbers bodies wait. */
export type UnfollowedWaba = {
  wabaId: string;
  businessName: string;
  problem: string | null;
  askedAt: Date | null;
  waiting: number;
};

export async function listUnfollowedWabas(database: Database, limit: number): Promise<UnfollowedWaba[]> {
  return await query<UnfollowedWaba>(
    database,
    `select w.waba_id as "wabaId", t.business_name as "businessName", w.numbers_problem as problem,
            w.numbers_asked_at as "askedAt",
            (select count(*)::integer from waiting_bodies b where b.waba_id = w.waba_id and not b.refused) as waiting
       from wabas w join tenants t on t.id = w.tenant_id
      where w.removed_at is null
        and (w.numbers_problem is not null
             or exists (select from waiting_bodies b where b.waba_id = w.waba_id and not b.refused))
      order by w.waba_id limit :limit`,
    { limit },
  );
}

export async function countWabasWithProblem(database: Database): Promise<number> {
  const text = 'select count(*)::integer from wabas where removed_at is null and numbers_problem is not null';
  return (await queryValue<number>(database, text)) ?? 0;
}

export async function readNumberLookup(
  database: Database,
  wabaId: string,
): Promise<{ askedAt: Date | null; problem: string | null }> {
  const text =
    'select numbers_asked_at as "askedAt", numbers_problem as problem from wabas where waba_id = :wabaId';
  return (await queryOne(database, text, { wabaId })) ?? { askedAt: null, problem: null };
}

type FollowedNumbers = {
  added: string[];
  removed: string[];
  /** Belong to another WABA here, and stay there. */
  taken: string[];
  /** Bodies that are ingested now, that are quarantined, and that came too late to be decided. */
  released: number;
  refused: number;
  waiting: number;
};

/**
 * Makes the numbers of a WABA those that upstream lists: adds, updates and removes (what is removed keeps its history),
 * and ingests what waited for a new one, before anything that comes later. What waited since before `askedAt` for a
 * number that is not listed is quarantined. Ends the task when nothing waits any more.
 */
export async function followNumbers(
  { database }: { database: Database },
  wabaId: string,
  listed: readonly ListedNumber[],
  askedAt: Date,
): Promise<FollowedNumbers> {
  const numbers = [...new Map(listed.map((number) => [number.phoneNumberId, number])).values()];
  return await database.transaction(async (trx) => {
    await lockIntake(trx, shardOf(wabaId));
    const { added, taken } = await saveFollowedNumbers(trx, wabaId, numbers);
    const removed = await removeOtherNumbers(
      trx,
      wabaId,
      numbers.map(({ phoneNumberId }) => phoneNumberId),
    );
    const released = await releaseWaitingBodies(trx, wabaId);
    const refused = await refuseWaitingBodies(trx, wabaId, askedAt);
    const waiting = await countWaitingBodies(trx, wabaId);
    await saveNumbersProblem(trx, wabaId, problemOf(taken));
    if (added.length > 0 || removed.length > 0) {
      const detail = { added: added.join(', '), removed: removed.join(', ') };
      const change = { wabaId, action: 'waba.numbers_followed', target: `WABA ${wabaId}`, detail };
      await recordChange(trx, SYSTEM, change);
    }
    if (waiting === 0) await finishAskedTask(trx, numbersWorkflowId(wabaId));
    return { added, removed, taken, released, refused, waiting };
  });
}

function problemOf(taken: readonly string[]): string | null {
  return taken.length === 0
    ? null
    : `Upstream lists ${taken.join(', ')} as well, which belongs to another WABA here and stays there.`;
}
