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
