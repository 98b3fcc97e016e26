import type { FastifyRequest } from 'fastify';
import type { Audited } from '../../../platform/audit/audit.ts';
import { actorOf, type Viewer } from '../access/viewer.ts';
import type { PortalContext } from '../portal-app.ts';

/** Where the pages about a WABA's endpoints are. */
export function endpointsPath(wabaId: string): string {
  return `/portal/w/${encodeURIComponent(wabaId)}/endpoints`;
}

/** Where one endpoint's page is. */
export function endpointPath(wabaId: string, id: string): string {
  return `${endpointsPath(wabaId)}/${encodeURIComponent(id)}`;
}

/** The deliveries to an endpoint that failed for good. */
export function failedPath(wabaId: string, id: string): string {
  return `/portal/w/${encodeURIComponent(wabaId)}/deliveries?state=failed&endpointId=${encodeURIComponent(id)}`;
}

/** The services that change endpoints, in the name of whoever looks at the page. */
export function toolsOf(request: FastifyRequest, { accounts }: PortalContext): typeof accounts & Audited {
  return { ...accounts, actor: actorOf(request) };
}

/** Whether the viewer gets the buttons that change something. */
export function mayChange({ role }: Viewer): boolean {
  return role !== 'member';
}
