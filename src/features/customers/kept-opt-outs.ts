import type { ErasedTable } from '../../platform/erasing.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { execute } from '../../platform/postgres/sql.ts';

export const OPT_OUTS: ErasedTable = { table: 'opt_outs', count: 'optOuts', key: 'id' };

/**
 * Before customers lose their ids: who wanted no messages gets none either under an id that comes again, and nothing but a
 * salted hash of each id is kept for that. Returns how many are kept.
 */
export async function keepOptOuts(trx: Transaction, contactIds: readonly string[]): Promise<number> {
  const some = 'contact_id = any (:contactIds::bigint[])';
  await execute(
    trx,
    `delete from opt_outs where ${some} and (not is_stop or cardinality(opt_out_keys(contact_id)) = 0)`,
    { contactIds },
  );
  return await execute(
    trx,
    `update opt_outs set kept_keys = opt_out_keys(contact_id), contact_id = null, reason = null where ${some}`,
    { contactIds },
  );
}

/**
 * Gives a contact what was kept of it, and what `otherId` has, who turned out to be the same person: of each kind at a number
 * the latest.
 */
export async function gatherOptOuts(
  trx: Transaction,
  contactId: string,
  otherId: string | null = null,
): Promise<void> {
  const theirs = `select id from opt_outs where contact_id in (:contactId, cast(:otherId as bigint))
    union all select id from opt_outs where kept_keys && opt_out_keys(:contactId)`;
  await execute(
    trx,
    `delete from opt_outs where id in (
       select id from (select id, row_number() over (partition by phone_number_id, is_upstream order by reported_at desc, id) as n
                         from opt_outs where id in (${theirs})) as o where n > 1)`,
    { contactId, otherId },
  );
  await execute(
    trx,
    `update opt_outs set contact_id = :contactId, kept_keys = null
      where id in (${theirs}) and contact_id is distinct from :contactId`,
    { contactId, otherId },
  );
}
