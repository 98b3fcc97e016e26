import type { FastifyRequest } from 'fastify';
import { viewerOf } from '../access/viewer.ts';
import { wabaOf } from '../access/waba-of.ts';

export const KEYS_PATH = '/portal/w/:wabaId/keys';

/** Where the keys of this request's WABA are. */
export function keysPath(request: FastifyRequest): string {
  return `/portal/w/${wabaOf(request).wabaId}/keys`;
}

/** What all pages about keys have in common. */
export function keyView(request: FastifyRequest) {
  return { viewer: viewerOf(request), waba: wabaOf(request), active: 'keys' };
}
