import { findNumberOwners } from '../../features/accounts/number-owners.ts';
import { textOf } from '../../platform/json/json-members.ts';
import { type JsonNode, parseJson } from '../../platform/json/json-text.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import type { FieldItem } from '../split/field-items.ts';

export type FieldValue = { wabaId: string; phoneNumberId: string; field: string; value: JsonNode };

/** The values of these fields, as far as they are about a number that the WABA has. */
export async function valuesOfNumbers(
  trx: Transaction,
  items: readonly FieldItem[],
  fields: readonly string[],
): Promise<FieldValue[]> {
  const wanted = items.flatMap((item) =>
    item.phoneNumberId !== null && fields.includes(item.field)
      ? [{ ...item, phoneNumberId: item.phoneNumberId }]
      : [],
  );
  if (wanted.length === 0) return [];
  const owners = await findNumberOwners(trx, [...new Set(wanted.map(({ phoneNumberId }) => phoneNumberId))]);
  return wanted.flatMap(({ wabaId, phoneNumberId, field, valueJson }) => {
    const owner = owners.get(phoneNumberId);
    if (owner?.wabaId !== wabaId || owner.removed) return [];
    return [{ wabaId, phoneNumberId, field, value: parseJson(valueJson, { deepNodes: 'mark' }) }];
  });
}

/** A time that upstream gave, or now: one in the future would outdo all later reports, and keep what it opens open. */
export function notAfter(at: Date | null, now: Date): Date {
  return at === null || at > now ? now : at;
}

/** A text or number of a report in one line, for people; empty for anything else. */
export function lineOf(value: unknown, maxChars: number): string {
  return textOf(value).toWellFormed().replaceAll(/\p{C}/gu, ' ').slice(0, maxChars).trim();
}
