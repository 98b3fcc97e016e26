import { randomInt } from 'node:crypto';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import { sealedSecret } from '../../platform/crypto/sealed-secret.ts';
import { openOrNull } from '../../platform/crypto/secret-box.ts';
import { execute, queryValue } from '../../platform/postgres/sql.ts';

export const NUMBER_PIN = sealedSecret({
  table: 'phone_numbers',
  id: ['phone_number_id', 'text'],
  secret: 'pin',
});

const PINS = 1_000_000;
const DIGITS = 6;

export function randomPin(): string {
  return String(randomInt(PINS)).padStart(DIGITS, '0');
}

/** The PIN with which a number is registered; null: none is known, or it cannot be opened any more. */
export async function numberPin(
  { database, secretBox }: SealedDatabase,
  phoneNumberId: string,
): Promise<string | null> {
  const text = 'select pin_sealed from phone_numbers where phone_number_id = :phoneNumberId';
  const sealed = await queryValue<string>(database, text, { phoneNumberId });
  return sealed === null ? null : openOrNull(secretBox, sealed, NUMBER_PIN.place(phoneNumberId));
}

/** Keeps the PIN of a number; null forgets it. */
export async function saveNumberPin(
  { database, secretBox }: SealedDatabase,
  phoneNumberId: string,
  pin: string | null,
): Promise<void> {
  const sealed = pin === null ? null : secretBox.seal(pin, NUMBER_PIN.place(phoneNumberId));
  const text = 'update phone_numbers set pin_sealed = :sealed where phone_number_id = :phoneNumberId';
  await execute(database, text, { sealed, phoneNumberId });
}
