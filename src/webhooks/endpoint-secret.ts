/** What an endpoint's sealed secret is bound to: a copy of it in another row does not open. */
export function endpointSecretPlace(endpointId: string): string {
  return `webhook_endpoints|secret|${endpointId}`;
}
