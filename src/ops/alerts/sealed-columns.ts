import type { SealedColumn } from '../../platform/crypto/secret-box.ts';

// What sealed secrets are bound to: a copy of one in another row does not open.

export function operationsSecretPlace(wabaId: string): string {
  return `wabas|operations_secret|${wabaId}`;
}

export const ALERT_SECRETS: readonly SealedColumn[] = [
  {
    table: 'wabas',
    idColumn: 'waba_id',
    idType: 'text',
    column: 'operations_secret_sealed',
    place: operationsSecretPlace,
  },
];
