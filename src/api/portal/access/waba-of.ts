import type { FastifyRequest } from 'fastify';

/** The WABA that a page is about. */
export type PageWaba = { wabaId: string; tenantId: string; businessName: string };

declare module 'fastify' {
  interface FastifyRequest {
    portalWaba: PageWaba | null;
  }
}

/** The WABA in the path, which the viewer may see. Throws on pages without `:wabaId`. */
export function wabaOf(request: FastifyRequest): PageWaba {
  if (request.portalWaba === null) throw new Error('the path of this page names no WABA');
  return request.portalWaba;
}
