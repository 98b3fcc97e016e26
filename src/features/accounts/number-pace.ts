import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { execute, query, queryOne } from '../../platform/postgres/sql.ts';
import { invalidValue, RequestError, shown } from '../../platform/request-input.ts';

const FASTEST = 1_000;

/** What upstream allows most numbers. */
const USUAL = 80;
const IN_APP = 20;

/** What upstream allows a number, by the level of its throughput; null where that says nothing. A number in the app too has a separate rate. */
export function upstreamPerSecond(level: string | null, isInApp: boolean): number | null {
  if (isInApp) return IN_APP;
  if (level === 'HIGH') return FASTEST;
  return level === 'STANDARD' ? USUAL : null;
}

type NumberTools = { database: Database } & Audited;

type KnownPace = { messagesPerSecond: number | null; upstreamPerSecond: number | null };

/** An operator decides, for the number or with `setting` for all; then upstream. */
export function paceOfNumber(known: KnownPace, setting: number | null): number {
  return known.messagesPerSecond ?? setting ?? known.upstreamPerSecond ?? USUAL;
}

/**
 * Lets messages of a number leave at its own pace, null: at the installation's, or as upstream allows. What has drawn its time already keeps it.
 * Throws RequestError: `invalid_value`, `unknown_phone_number`.
 */
export async function setNumberPace(
  tools: NumberTools,
  wabaId: string,
  change: { phoneNumberId: string; messagesPerSecond: number | null },
): Promise<void> {
  const { phoneNumberId, messagesPerSecond } = change;
  const isPace =
    messagesPerSecond === null ||
    (Number.isInteger(messagesPerSecond) && messagesPerSecond >= 1 && messagesPerSecond <= FASTEST);
  if (!isPace) {
    throw invalidValue(`The pace must be 1 to ${FASTEST} messages per second.`, 'messagesPerSecond');
  }
  await setOfNumber(tools, wabaId, phoneNumberId, {
    column: 'messages_per_second',
    action: 'phone_number.pace_set',
    detail: { messagesPerSecond },
  });
}

/** Sets a column of a number to the one value of `detail`. Throws RequestError `unknown_phone_number`. */
export async function setOfNumber(
  { database, actor }: NumberTools,
  wabaId: string,
  phoneNumberId: string,
  {
    column,
    action,
    detail,
  }: { column: string; action: string; detail: Record<string, string | number | null> },
): Promise<void> {
  const [value = null] = Object.values(detail);
  await database.transaction(async (trx) => {
    const text = `update phone_numbers set ${column} = :value where waba_id = :wabaId and phone_number_id = :phoneNumberId`;
    const changed = await execute(trx, text, { value, wabaId, phoneNumberId });
    if (changed === 0) throw unknownNumber(phoneNumberId);
    await recordChange(trx, actor, { wabaId, action, target: `phone number ${phoneNumberId}`, detail });
  });
}

/** The WABA of a number, for operators. Throws RequestError `unknown_phone_number`. */
export async function wabaOfNumber(database: Database, phoneNumberId: string): Promise<string> {
  const text = 'select waba_id as "wabaId" from phone_numbers where phone_number_id = :phoneNumberId';
  const row = await queryOne<{ wabaId: string }>(database, text, { phoneNumberId });
  if (row === null) throw unknownNumber(phoneNumberId);
  return row.wabaId;
}

function unknownNumber(phoneNumberId: string): RequestError {
  const message = `There is no phone number with the id ${shown(phoneNumberId)}.`;
  return new RequestError('unknown_phone_number', message);
}

type NumberPace = {
  phoneNumberId: string;
  displayPhoneNumber: string;
} & KnownPace;

export async function listNumberPaces(database: Database, wabaId: string): Promise<NumberPace[]> {
  return await query<NumberPace>(
    database,
    `select phone_number_id as "phoneNumberId", display_phone_number as "displayPhoneNumber",
            messages_per_second as "messagesPerSecond", upstream_per_second as "upstreamPerSecond"
       from phone_numbers where waba_id = :wabaId order by phone_number_id`,
    { wabaId },
  );
}
