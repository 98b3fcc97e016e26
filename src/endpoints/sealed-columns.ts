import type { SealedColumn } from '../platform/crypto/secret-box.ts';

// What sealed secrets are bound to: a copy of one in another row does not open.

/** The signing secret of a webhook endpoint. */
export function endpointSecretPlace(endpointId: string): string {
  return `webhook_endpoints|secret|${endpointId}`;
}

/** The app secret that signs webhooks in the upstream platform's form. */
export function endpointAppSecretPlace(endpointId: string): string {
  return `webhook_endpoints|app_secret|${endpointId}`;
}

/** The private key that signs an endpoint's webhooks beside its secret. */
export function endpointSigningKeyPlace(endpointId: string): string {
  return `webhook_endpoints|signing_key|${endpointId}`;
}

/** The private key of an endpoint's client certificate. */
export function endpointClientKeyPlace(endpointId: string): string {
  return `webhook_endpoints|client_key|${endpointId}`;
}

/** The headers that a tenant adds to its webhooks, as a JSON object: they often hold credentials. */
export function endpointHeadersPlace(endpointId: string): string {
  return `webhook_endpoints|custom_headers|${endpointId}`;
}

const COLUMN = { table: 'webhook_endpoints', idColumn: 'id', idType: 'bigint' } as const;

/** The columns of this room with sealed texts. */
export const ENDPOINT_SECRETS: readonly SealedColumn[] = [
  { ...COLUMN, column: 'secret_sealed', place: endpointSecretPlace },
  { ...COLUMN, column: 'previous_secret_sealed', place: endpointSecretPlace },
  { ...COLUMN, column: 'app_secret_sealed', place: endpointAppSecretPlace },
  { ...COLUMN, column: 'signing_key_sealed', place: endpointSigningKeyPlace },
  { ...COLUMN, column: 'previous_signing_key_sealed', place: endpointSigningKeyPlace },
  { ...COLUMN, column: 'client_key_sealed', place: endpointClientKeyPlace },
  { ...COLUMN, column: 'custom_headers_sealed', place: endpointHeadersPlace },
];
