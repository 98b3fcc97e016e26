import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query, queryOne } from '../../platform/postgres/sql.ts';
import type { CustomerReference } from './customer-reference.ts';
import { earliestStops, gatherOptOuts, KNOWN_RESUME, KNOWN_STOPS } from './kept-opt-outs.ts';

/** `all`: nothing but what goes out within the customer service window, and no marketing then either. */
export const OPT_OUT_SCOPES = ['marketing', 'all'] as const;

/** Who said it: upstream, by `user_preferences` or by refusing a message, or the tenant. */
export const OPT_OUT_SOURCES = ['upstream', 'error_131050', 'api', 'portal'] as const;

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

/** Null: the customer gets all messages, or it is a group. */
export async function optOutOf(
  database: Database,
  wabaId: string,
  conversationId: string,
): Promise<OptOutMark | null> {
  return await queryOne<OptOutMark>(
    database,
    `select p.* from conversations c cross join lateral (${OPT_OUT_OF_CONVERSATION}) as p
      where c.waba_id = :wabaId and c.id = :conversationId`,
    { wabaId, conversationId },
  );
}

/** What upstream reports of a customer at one number. */
export type PreferenceReport = {
  wabaId: string;
  phoneNumberId: string;
  contactId: string;
  source: 'upstream' | 'error_131050';
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

/**
 * In the order in which they came; of each customer at a number the latest by its time holds, and a stop began with the earliest
 * report of it since the newest resume.
 */
export async function notePreferences(trx: Transaction, reports: readonly PreferenceReport[]): Promise<void> {
  for (const contactId of new Set(reports.map((report) => report.contactId)))
    await gatherOptOuts(trx, contactId);
  for (const report of reports)
    await execute(
      trx,
      `insert into opt_outs as o (waba_id, phone_number_id, contact_id, source, is_stop, scope, since, reported_at)
       values (:wabaId, :phoneNumberId, :contactId, :source, :isStop, 'marketing', :at, :at)
       on conflict (contact_id, coalesce(phone_number_id, ''), is_upstream) where contact_id is not null do update
          set source = case when excluded.reported_at >= o.reported_at then excluded.source else o.source end,
              is_stop = case when excluded.reported_at >= o.reported_at then excluded.is_stop else o.is_stop end,
              reported_at = greatest(o.reported_at, excluded.reported_at),
              resumed_at = ${RESUMED_AT},
              stopped_at = ${STOPPED_AT},
              since = case when excluded.reported_at >= o.reported_at and not excluded.is_stop then excluded.since
                else coalesce((${STOPPED_AT})[1], o.since) end`,
      report,
    );
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
  await gatherOptOuts(trx, optOut.contactId);
  const added = await queryOne<{ id: string }>(
    trx,
    `insert into opt_outs as o (waba_id, phone_number_id, contact_id, scope, source, reason, since, reported_at)
     values (:wabaId, :phoneNumberId, :contactId, :scope, :source, :reason, now(), now())
     on conflict (contact_id, coalesce(phone_number_id, ''), is_upstream) where contact_id is not null do update
        set scope = excluded.scope, reason = excluded.reason, source = excluded.source, reported_at = excluded.reported_at
     returning id`,
    optOut,
  );
  return added?.id ?? '';
}

/** Those of the tenant's own, at one number or at all; returns how many ended. */
export async function endOptOuts(
  trx: Transaction,
  { wabaId, contactId, phoneNumberId }: Pick<NewOptOut, 'wabaId' | 'contactId' | 'phoneNumberId'>,
): Promise<number> {
  return await execute(
    trx,
    `delete from opt_outs where waba_id = :wabaId and contact_id = :contactId and not is_upstream
        and (cast(:phoneNumberId as text) is null or phone_number_id = :phoneNumberId)`,
    { wabaId, contactId, phoneNumberId },
  );
}

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
