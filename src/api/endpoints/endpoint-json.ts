import type { EndpointView } from '../../endpoints/endpoint-view.ts';

/** An endpoint as tenants see it. */
export function endpointJson<View extends EndpointView>(view: View) {
  const { wabaId, version, probeFailures, ...shown } = view;
  return {
    ...shown,
    modeChangedAt: view.modeChangedAt.toISOString(),
    failingSince: view.failingSince?.toISOString() ?? null,
    nextProbeAt: view.nextProbeAt?.toISOString() ?? null,
    previousSecretExpiresAt: view.previousSecretExpiresAt?.toISOString() ?? null,
    createdAt: view.createdAt.toISOString(),
    updatedAt: view.updatedAt.toISOString(),
  };
}
