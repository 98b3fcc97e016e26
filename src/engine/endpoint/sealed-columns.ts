import type { SealedColumn } from '../../platform/crypto/secret-box.ts';

// The row that a sealed secret is bound to: a copy of one in another row does not open.

const placeOf = (secret: string) => (endpointId: string) => `webhook_endpoints|${secret}|${endpointId}`;

export const endpointSecretPlace = placeOf('secret');
export const endpointAppSecretPlace = placeOf('app_secret');
export const endpointSigningKeyPlace = placeOf('signing_key');
export const endpointClientKeyPlace = placeOf('client_key');
export const endpointHeadersPlace = placeOf('custom_headers');

const COLUMN = { table: 'webhook_endpoints', idColumn: 'id', idType: 'bigint' } as const;

export const ENDPOINT_SECRETS: readonly SealedColumn[] = [
  { ...COLUMN, column: 'secret_sealed', place: endpointSecretPlace },
  { ...COLUMN, column: 'previous_secret_sealed', place: endpointSecretPlace },
  { ...COLUMN, column: 'app_secret_sealed', place: endpointAppSecretPlace },
  { ...COLUMN, column: 'signing_key_sealed', place: endpointSigningKeyPlace },
  { ...COLUMN, column: 'previous_signing_key_sealed', place: endpointSigningKeyPlace },
  { ...COLUMN, column: 'client_key_sealed', place: endpointClientKeyPlace },
  { ...COLUMN, column: 'custom_headers_sealed', place: endpointHeadersPlace },
];
