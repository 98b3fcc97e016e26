/** What sealed secrets are bound to: a copy of one in another row does not open. */

/** The signing secret of a webhook endpoint. */
export function endpointSecretPlace(endpointId: string): string {
  return `webhook_endpoints|secret|${endpointId}`;
}

/** The upstream access token of a WABA. */
export function accessTokenPlace(wabaId: string): string {
  return `wabas|access_token|${wabaId}`;
}
