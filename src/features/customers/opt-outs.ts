import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { query, queryOne } from '../../platform/postgres/sql.ts';
import type { CustomerReference } from './customer-reference.ts';
import { earliestStops, gatherOptOuts, KNOWN_RESUME, KNOWN_STOPS } from './kept-opt-outs.ts';
import { type PreferenceChange, publishPreferences } from './preference-events.ts';

/** `all`: nothing but what goes out within the customer service window, and no marketing then either. */
export const OPT_OUT_SCOPES = ['marketing', 'all'] as const;

/** Who said it: upstream, by `user_preferences` or by refusing a message, the customer by a word of the tenant's, or the tenant. */
export const OPT_OUT_SOURCES = ['upstream', 'error_131050', 'keyword', 'api', 'portal'] as const;

export type OptOutMark = {
  scope: (typeof OPT_OUT_SCOPES)[number];
  source: (typeof OPT_OUT_SOURCES)[number];
  since: Date;
};

/** The error by which upstream says that a customer wants no marketing. */
export const OPTED_OUT_CODE = 131_050;

/** SQL over `opt_outs o`: those of a contact at a number, also as kept by an erasure. */
function holdsFor(contactId: string, phoneNumberId: string): string {
  return `o.is_stop and (o.phone_number_id is null or o.phone_number_id = ${phoneNumberId})
    and o.id in (select x.id from opt_outs x where x.contact_id = ${contactId}
                 union all select x.id from opt_outs x where x.kept_keys && opt_out_keys(${contactId}))`;
}

/** SQL over `conversations c`: what its customer wants no messages of, of the widest scope. */
export const OPT_OUT_OF_CONVERSATION = `select o.scope, o.source, o.since from opt_outs o
  where ${holdsFor('c.contact_id', 'c.phone_number_id')} order by o.scope, o.since limit 1`;

/** SQL over `conversations c`, for filters: without what erasures kept. */
export const IS_OPTED_OUT = `exists (select from opt_outs o where o.contact_id = c.contact_id and o.is_stop
  and (o.phone_number_id is null or o.phone_number_id = c.phone_number_id))`;

/** By the conversation. Those whose customers get all messages, and groups, have none. */
export async function optOutsOfConversations(
  database: Database,
  wabaId: string,
  conversationIds: readonly string[],
): Promise<Map<string, OptOutMark>> {
  const rows = await query<OptOutMark & { id: string }>(
    database,
    `select c.id, p.* from conversations c cross join lateral (${OPT_OUT_OF_CONVERSATION}) as p
      where c.waba_id = :wabaId and c.id = any (:conversationIds::bigint[])`,
    { wabaId, conversationIds },
  );
  return new Map(rows.map(({ id, ...mark }) => [id, mark]));
}

/** What upstream, or the customer by a word, says about marketing of one number. */
export type PreferenceReport = {
  wabaId: string;
  phoneNumberId: string;
  contactId: string;
  source: 'upstream' | 'error_131050' | 'keyword';
  isStop: boolean;
  at: Date;
};

/** SQL: the newest resume that is known of a row `o`, with the report that has come. */
const RESUMED_AT = `greatest(${KNOWN_RESUME}, case when not excluded.is_stop then excluded.reported_at end)`;

/** SQL over the same: the times of stops that no resume ended; of one second a resume ends what came before it. */
const STOPPED_AT = earliestStops(
  `unnest(${KNOWN_STOPS}) as s (at) where excluded.is_stop or at > excluded.reported_at
   union select excluded.reported_at where excluded.is_stop and excluded.reported_at >= coalesce(${KNOWN_RESUME}, '-infinity')`,
);

/** SQL: whether the report that has come is as late as what is known of a row `o`. */
const IS_LATEST = 'excluded.reported_at >= o.reported_at';

/** SQL: a word changes nothing of what the tenant noted, except that it ends what is about marketing. */
const MAY_CHANGE = `excluded.source <> 'keyword' or o.source = 'keyword' or not o.is_stop
  or (o.scope = 'marketing' and not excluded.is_stop)`;

/**
 * In the order in which they came; of each customer at a number the latest by its time holds, and a stop began with the earliest
 * report of it since the newest resume. What upstream reported and what the tenant noted are separate; words belong to the latter.
 */
export async function notePreferences(trx: Transaction, reports: readonly PreferenceReport[]): Promise<void> {
  for (const contactId of new Set(reports.map((report) => report.contactId)))
    await gatherOptOuts(trx, contactId);
  const changes: PreferenceChange[] = [];
  for (const report of reports) {
    const noted = await queryOne<OptOutMark & { isStop: boolean; wasStop: boolean | null }>(
      trx,
      `with before as (
         select is_stop from opt_outs where contact_id = :contactId and phone_number_id = :phoneNumberId
            and is_upstream = (:source <> 'keyword'))
       insert into opt_outs as o (waba_id, phone_number_id, contact_id, source, is_stop, scope, since, reported_at)
       values (:wabaId, :phoneNumberId, :contactId, :source, :isStop, 'marketing', :at, :at)
       on conflict (contact_id, coalesce(phone_number_id, ''), is_upstream) where contact_id is not null do update
          set source = case when ${IS_LATEST} then excluded.source else o.source end,
              is_stop = case when ${IS_LATEST} then excluded.is_stop else o.is_stop end,
              scope = case when ${IS_LATEST} then excluded.scope else o.scope end,
              reason = case when ${IS_LATEST} then null else o.reason end,
              reported_at = greatest(o.reported_at, excluded.reported_at),
              resumed_at = ${RESUMED_AT},
              stopped_at = ${STOPPED_AT},
              since = case when ${IS_LATEST} and not excluded.is_stop then excluded.since
                else coalesce((${STOPPED_AT})[1], o.since) end
        where ${MAY_CHANGE}
       returning o.scope, o.source, o.since, o.is_stop as "isStop", (select is_stop from before) as "wasStop"`,
      report,
    );
    if (noted === null || noted.isStop === noted.wasStop) continue;
    const { scope, source, since, isStop } = noted;
    const { wabaId, contactId, phoneNumberId } = report;
    changes.push({ wabaId, contactId, phoneNumberId, scope, source, since, isStop });
  }
  await publishPreferences(trx, changes);
}

/** Upstream refused a message, because the customer of its conversation wants no marketing. */
export async function noteRefusedRecipient(
  trx: Transaction,
  { conversationId, ...message }: { wabaId: string; phoneNumberId: string; conversationId: string },
  at: Date,
): Promise<void> {
  const person = await queryOne<{ contactId: string | null }>(
    trx,
    'select contact_id as "contactId" from conversations where waba_id = :wabaId and id = :conversationId',
    { ...message, conversationId },
  );
  const contactId = person?.contactId ?? null;
  if (contactId === null) return;
  await notePreferences(trx, [{ ...message, contactId, source: 'error_131050', isStop: true, at }]);
}

export type NewOptOut = {
  wabaId: string;
  contactId: string;
  phoneNumberId: string | null;
  scope: OptOutMark['scope'];
  source: 'api' | 'portal';
  reason: string | null;
};

/** Once per customer and number: a later one changes scope and reason, and keeps the beginning. Returns its id. */
export async function addOptOut(trx: Transaction, optOut: NewOptOut): Promise<string> {
  const { wabaId, contactId, phoneNumberId, scope, source } = optOut;
  await gatherOptOuts(trx, contactId);
  const added = await queryOne<{ id: string; since: Date; stoppedScope: OptOutMark['scope'] | null }>(
    trx,
    `with before as (
       select scope from opt_outs where contact_id = :contactId and phone_number_id is not distinct from :phoneNumberId
          and not is_upstream and is_stop)
     insert into opt_outs as o (waba_id, phone_number_id, contact_id, scope, source, reason, since, reported_at)
     values (:wabaId, :phoneNumberId, :contactId, :scope, :source, :reason, now(), now())
     on conflict (contact_id, coalesce(phone_number_id, ''), is_upstream) where contact_id is not null do update
        set scope = excluded.scope, reason = excluded.reason, source = excluded.source, reported_at = excluded.reported_at,
            since = case when o.is_stop then o.since else excluded.since end, is_stop = true,
            stopped_at = case when o.is_stop then o.stopped_at end
     returning id, since, (select scope from before) as "stoppedScope"`,
    optOut,
  );
  if (added === null) throw new Error('the opt-out was not noted');
  const { id, since, stoppedScope } = added;
  if (stoppedScope !== scope)
    await publishPreferences(trx, [{ wabaId, contactId, phoneNumberId, scope, source, since, isStop: true }]);
  return id;
}

/** Those of the tenant's own and those by its words, at one number or at all; returns how many ended. */
export async function endOptOuts(
  trx: Transaction,
  { wabaId, contactId, phoneNumberId, source }: Omit<NewOptOut, 'scope' | 'reason'>,
): Promise<number> {
  const own = `waba_id = :wabaId and contact_id = :contactId and not is_upstream and is_stop
    and (cast(:phoneNumberId as text) is null or phone_number_id = :phoneNumberId)`;
  // A word that was sent before the end and comes behind it changes nothing.
  const byWords = await query<EndedOptOut>(
    trx,
    `update opt_outs set is_stop = false, source = 'keyword', reason = null, since = now(), reported_at = now(),
            resumed_at = now(), stopped_at = null
      where ${own} and (source = 'keyword' or stopped_at is not null) returning ${ENDED}`,
    { wabaId, contactId, phoneNumberId },
  );
  const others = await query<EndedOptOut>(trx, `delete from opt_outs where ${own} returning ${ENDED}`, {
    wabaId,
    contactId,
    phoneNumberId,
  });
  const since = new Date();
  const ended = [...byWords, ...others].map((one) => {
    return { ...one, wabaId, contactId, source, since, isStop: false };
  });
  await publishPreferences(trx, ended);
  return ended.length;
}

type EndedOptOut = Pick<PreferenceChange, 'phoneNumberId' | 'scope'>;

const ENDED = 'phone_number_id as "phoneNumberId", scope';

export type OptOutRow = OptOutMark & {
  id: string;
  phoneNumberId: string | null;
  reason: string | null;
  waId: string | null;
  userId: string | null;
  name: string | null;
  username: string | null;
};

export type OptOutFilter = {
  customer: CustomerReference | null;
  phoneNumberId: string | null;
  source: string | null;
  id?: string;
};

/** The newest first. Those of erased customers only when asked for by an id of theirs. */
export async function listOptOuts(
  database: Database,
  wabaId: string,
  { customer, phoneNumberId, source, id }: OptOutFilter,
  { beforeId, limit }: { beforeId: string | null; limit: number },
): Promise<OptOutRow[]> {
  const conditions = [
    'o.waba_id = :wabaId and o.is_stop',
    customer === null ? 'o.contact_id is not null' : `o.id in (${optOutsOf(customer)})`,
    ...(phoneNumberId === null ? [] : ['(o.phone_number_id is null or o.phone_number_id = :phoneNumberId)']),
    ...(source === null ? [] : ['o.source = :source']),
    ...(id === undefined ? [] : ['o.id = :id']),
    ...(beforeId === null ? [] : ['o.id < :beforeId']),
  ];
  return await query<OptOutRow>(
    database,
    `select o.id, o.phone_number_id as "phoneNumberId", o.scope, o.source, o.reason, o.since, k.wa_id as "waId",
            k.user_id as "userId", k.profile_name as name, k.username
       from opt_outs o left join contacts k on k.id = o.contact_id
      where ${conditions.join(' and ')} order by o.id desc limit :limit`,
    { wabaId, phoneNumberId, source, id: id ?? null, beforeId, limit, ...customer },
  );
}

function optOutsOf(customer: CustomerReference): string {
  const [name, contacts] =
    'userId' in customer
      ? [':userId', 'select id from contacts where waba_id = :wabaId and user_id = :userId']
      : [
          ':phone',
          `select id from contacts where waba_id = :wabaId and wa_id = :phone
           union select k.id from phone_aliases p join contacts k on k.waba_id = p.waba_id and k.wa_id = p.wa_id
                  where p.waba_id = :wabaId and p.phone = :phone`,
        ];
  return `select x.id from opt_outs x where x.contact_id in (${contacts})
          union all select x.id from opt_outs x where x.kept_keys && array[opt_out_key(:wabaId, ${name})]
          union all select x.id from (${contacts}) k join opt_outs x on x.kept_keys && opt_out_keys(k.id)`;
}
