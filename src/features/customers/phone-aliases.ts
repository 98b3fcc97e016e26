import type { ErasedTable } from '../../platform/erasing.ts';
import { otherSpelling } from '../../platform/phone-number.ts';
import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';

/** A phone that upstream knows under other digits, those of `waId`. */
export type PhoneAlias = { wabaId: string; phone: string; waId: string };

/** Notes pairs that upstream has shown; the latest holds. No alias leads to another one, so none has to be followed twice. */
export async function noteAliases(trx: Transaction, aliases: readonly PhoneAlias[]): Promise<void> {
  if (aliases.length === 0) return;
  const latest = [...new Map(aliases.map((alias) => [`${alias.wabaId} ${alias.phone}`, alias])).values()];
  const columns = columnsOf(latest, 'wabaId', 'phone', 'waId');
  const given = 'unnest(:wabaId::text[], :phone::text[], :waId::text[]) as g (waba_id, phone, wa_id)';
  await execute(
    trx,
    `delete from phone_aliases a using ${given} where a.waba_id = g.waba_id and a.phone = g.wa_id`,
    columns,
  );
  await execute(
    trx,
    `update phone_aliases a set wa_id = g.wa_id from ${given} where a.waba_id = g.waba_id and a.wa_id = g.phone`,
    columns,
  );
  await execute(
    trx,
    `insert into phone_aliases (waba_id, phone, wa_id) select * from ${given}
     on conflict (waba_id, phone) do update set wa_id = excluded.wa_id`,
    columns,
  );
}

/** The digits under which upstream knows each of these phones; the phone itself where nothing else is known. */
export async function actualPhones<Seen extends { wabaId: string; waId: string | null }>(
  trx: Transaction,
  seen: readonly Seen[],
): Promise<Seen[]> {
  const rows = await query<PhoneAlias>(
    trx,
    `select waba_id as "wabaId", phone, wa_id as "waId" from phone_aliases
      where (waba_id, phone) in (select * from unnest(:wabaIds::text[], :waIds::text[]))`,
    { wabaIds: seen.map(({ wabaId }) => wabaId), waIds: seen.map(({ waId }) => waId) },
  );
  const actual = new Map(rows.map(({ wabaId, phone, waId }) => [`${wabaId} ${phone}`, waId]));
  return seen.map((one) => ({ ...one, waId: actual.get(`${one.wabaId} ${one.waId}`) ?? one.waId }));
}

/**
 * Under which names each of these customers (digits of a phone, or a business-scoped user id) may be meant too: the other spelling of its country, the
 * digits under which upstream knows it, and the user id or phone of the same contact. A name that is not there has no other.
 */
export async function otherNames(
  trx: Transaction,
  wabaId: string,
  names: readonly string[],
): Promise<Map<string, string[]>> {
  const spelled = names.flatMap((name) => {
    const other = otherSpelling(name);
    return other === null ? [] : [{ name, other }];
  });
  const known = await query<{ name: string; other: string }>(
    trx,
    `with given as (select * from unnest(:names::text[], :spellings::text[]) as g (name, other)),
          phones as (
            select * from given
            union all select g.name, k.wa_id from given g join contacts k on k.waba_id = :wabaId and k.user_id = g.other where k.wa_id is not null),
          actual as (
            select * from phones
            union all select p.name, a.wa_id from phones p join phone_aliases a on a.waba_id = :wabaId and a.phone = p.other)
     select * from actual
     union all select p.name, a.phone from actual p join phone_aliases a on a.waba_id = :wabaId and a.wa_id = p.other
     union all select p.name, k.user_id from actual p join contacts k on k.waba_id = :wabaId and k.wa_id = p.other where k.user_id is not null`,
    {
      wabaId,
      names: [...names, ...spelled.map(({ name }) => name)],
      spellings: [...names, ...spelled.map(({ other }) => other)],
    },
  );
  const all = new Map<string, string[]>();
  for (const { name, other } of known) if (other !== name) all.set(name, [...(all.get(name) ?? []), other]);
  return all;
}

/** Those of a customer, by any of their ids. */
export async function eraseAliases(
  trx: Transaction,
  wabaId: string,
  ids: readonly string[],
): Promise<number> {
  return await execute(
    trx,
    `delete from phone_aliases where waba_id = :wabaId
        and (phone = any (cast(:ids as text[])) or wa_id = any (cast(:ids as text[])))`,
    { wabaId, ids },
  );
}

export async function forgetAliases(
  trx: Transaction,
  wabaId: string,
  waIds: readonly string[],
): Promise<void> {
  await execute(
    trx,
    'delete from phone_aliases where waba_id = :wabaId and wa_id = any (cast(:waIds as text[]))',
    { wabaId, waIds },
  );
}

export const PHONE_ALIASES: ErasedTable = { table: 'phone_aliases', count: 'aliases', key: 'waba_id, phone' };
