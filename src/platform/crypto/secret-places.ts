/** What sealed secrets are bound to: a copy of one in another row does not open. */

/** The signing secret of a webhook endpoint. */
export function endpointSecretPlace(endpointId: string): string {
  return `webhook_endpoints|secret|${endpointId}`;
}

/** The headers that a tenant adds to its webhooks, as a JSON object: they often hold credentials. */
export function endpointHeadersPlace(endpointId: string): string {
  return `webhook_endpoints|custom_headers|${endpointId}`;
}

/** The secret that signs what is sent to a tenant's operations URL. */
export function operationsSecretPlace(wabaId: string): string {
  return `wabas|operations_secret|${wabaId}`;
}

/** The upstream access token of a WABA. */
export function accessTokenPlace(wabaId: string): string {
  return `wabas|access_token|${wabaId}`;
}

/** A column of sealed texts, one per row at most. */
export type SealedColumn = {
  table: string;
  column: string;
  /** The row's key, which `place` is made of. */
  idColumn: string;
  idType: 'bigint' | 'text';
  place(id: string): string;
};

const endpointColumn = { table: 'webhook_endpoints', idColumn: 'id', idType: 'bigint' } as const;
const wabaColumn = { table: 'wabas', idColumn: 'waba_id', idType: 'text' } as const;

/** Every column of sealed texts: what is not here keeps an encryption key from being retired without anybody knowing. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { ...endpointColumn, column: 'secret_sealed', place: endpointSecretPlace },
  { ...endpointColumn, column: 'previous_secret_sealed', place: endpointSecretPlace },
  { ...endpointColumn, column: 'custom_headers_sealed', place: endpointHeadersPlace },
  { ...wabaColumn, column: 'access_token_sealed', place: accessTokenPlace },
  { ...wabaColumn, column: 'operations_secret_sealed', place: operationsSecretPlace },
];
