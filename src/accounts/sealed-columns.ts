import type { SealedColumn } from '../platform/crypto/secret-box.ts';

// What sealed secrets are bound to: a copy of one in another row does not open.

/** The upstream access token of a WABA. */
export function accessTokenPlace(wabaId: string): string {
  return `wabas|access_token|${wabaId}`;
}

/** The columns of this room with sealed texts. */
export const ACCOUNT_SECRETS: readonly SealedColumn[] = [
  {
    table: 'wabas',
    idColumn: 'waba_id',
    idType: 'text',
    column: 'access_token_sealed',
    place: accessTokenPlace,
  },
];
