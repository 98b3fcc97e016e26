import type { Database } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';
import type { PhoneNumber } from './accounts.ts';

/** Who a WABA belongs to and its numbers; null when there is none such. One statement: it is asked often. */
export async function findAccountIdentity(
  database: Database,
  wabaId: string,
): Promise<{ businessName: string; phoneNumbers: PhoneNumber[] } | null> {
  const rows = await query<
    { businessName: string } & { [Name in keyof PhoneNumber]: PhoneNumber[Name] | null }
  >(
    database,
    `select t.business_name as "businessName", n.phone_number_id as "phoneNumberId",
            n.display_phone_number as "displayPhoneNumber", n.verified_name as "verifiedName",
            n.quality_rating as "qualityRating"
       from wabas w join tenants t on t.id = w.tenant_id left join phone_numbers n on n.waba_id = w.waba_id
                                                      and n.removed_at is null
      where w.waba_id = ? order by n.phone_number_id`,
    [wabaId],
  );
  const [first] = rows;
  if (first === undefined) return null;
  const phoneNumbers = rows
    .map(({ businessName, ...number }) => number)
    .filter((number): number is PhoneNumber => number.phoneNumberId !== null);
  return { businessName: first.businessName, phoneNumbers };
}
