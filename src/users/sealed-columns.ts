import type { SealedColumn } from '../platform/crypto/secret-box.ts';

// What sealed secrets are bound to: a copy of one in another row does not open.

/** The secret of a user's second factor. */
export function totpSecretPlace(userId: string): string {
  return `user_totp|secret|${userId}`;
}

/** The columns of this room with sealed texts. */
export const USER_SECRETS: readonly SealedColumn[] = [
  {
    table: 'user_totp',
    idColumn: 'user_id',
    idType: 'bigint',
    column: 'secret_sealed',
    place: totpSecretPlace,
  },
];
