import type { SealedColumn } from '../platform/crypto/secret-box.ts';

// What sealed secrets are bound to: a copy of one in another row does not open.

export function endpointSecretPlace(endpointId: string): string {
  return `webhook_endpoints|secret|${endpointId}`;
}

export function endpointAppSecretPlace(endpointId: string): string {
  return `webhook_endpoints|app_secret|${endpointId}`;
}

export function endpointSigningKeyPlace(endpointId: string): string {
  return `webhook_endpoints|signing_key|${endpointId}`;
}

export function endpointClientKeyPlace(endpointId: string): string {
  return `webhook_endpoints|client_key|${endpointId}`;
}

export function endpointHeadersPlace(endpointId: string): string {
  return `webhook_endpoints|custom_headers|${endpointId}`;
}

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
