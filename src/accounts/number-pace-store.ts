import type { Database } from '../platform/postgres/database.ts';
import { execute, query } from '../platform/postgres/sql.ts';

/** A phone number and its own pace; null: the installation's. */
export type NumberPace = {
  phoneNumberId: string;
  displayPhoneNumber: string;
  messagesPerSecond: number | null;
};

/** The numbers of a WABA with their paces. */
export async function listNumberPaces(database: Database, wabaId: string): Promise<NumberPace[]> {
  return await query<NumberPace>(
    database,
    `select phone_number_id as "phoneNumberId", display_phone_number as "displayPhoneNumber",
            messages_per_second as "messagesPerSecond"
       from phone_numbers where waba_id = ? order by phone_number_id`,
    [wabaId],
  );
}

/** For operators, who name numbers of every WABA; null when there is none such. */
export async function findWabaOfNumber(database: Database, phoneNumberId: string): Promise<string | null> {
  const [row] = await query<{ wabaId: string }>(
    database,
    'select waba_id as "wabaId" from phone_numbers where phone_number_id = ?',
    [phoneNumberId],
  );
  return row?.wabaId ?? null;
}

/** Sets the pace of a number; null goes back to the installation's. False: the WABA has no such number. */
export async function saveNumberPace(
  database: Database,
  wabaId: string,
  { phoneNumberId, messagesPerSecond }: { phoneNumberId: string; messagesPerSecond: number | null },
): Promise<boolean> {
  const changed = await execute(
    database,
    'update phone_numbers set messages_per_second = ? where waba_id = ? and phone_number_id = ?',
    [messagesPerSecond, wabaId, phoneNumberId],
  );
  return changed === 1;
}
