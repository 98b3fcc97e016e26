import type { SealedColumn } from '../../platform/crypto/secret-box.ts';

// What sealed secrets are bound to: a copy of one in another row does not open.

export function accessTokenPlace(wabaId: string): string {
  return `wabas|access_token|${wabaId}`;
}

export function numberPinPlace(phoneNumberId: string): string {
  return `phone_numbers|pin|${phoneNumberId}`;
}

export const ACCOUNT_SECRETS: readonly SealedColumn[] = [
  {
    table: 'wabas',
    idColumn: 'waba_id',
    idType: 'text',
    column: 'access_token_sealed',
    place: accessTokenPlace,
  },
  {
    table: 'phone_numbers',
    idColumn: 'phone_number_id',
    idType: 'text',
    column: 'pin_sealed',
    place: numberPinPlace,
  },
];
