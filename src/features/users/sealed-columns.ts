import type { SealedColumn } from '../../platform/crypto/secret-box.ts';

// What sealed secrets are bound to: a copy of one in another row does not open.

export function totpSecretPlace(userId: string): string {
  return `user_totp|secret|${userId}`;
}

export const USER_SECRETS: readonly SealedColumn[] = [
  {
    table: 'user_totp',
    idColumn: 'user_id',
    idType: 'bigint',
    column: 'secret_sealed',
    place: totpSecretPlace,
  },
];
