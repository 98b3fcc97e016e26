import { fileURLToPath } from 'node:url';
import fastifyStatic from '@fastify/static';
import { ASSET_DIRECTORY, ASSET_PREFIX } from './asset-urls.ts';
import type { PortalApp, PortalContext } from './portal-app.ts';

/** The portal: pages for tenants and operators, each behind a declared right. */
export async function portalRoutes(scope: PortalApp, _context: PortalContext): Promise<void> {
  await scope.register(fastifyStatic, {
    root: fileURLToPath(ASSET_DIRECTORY),
    prefix: ASSET_PREFIX,
    cacheControl: false,
    index: false,
    setHeaders: (reply) => reply.header('cache-control', 'public, max-age=31536000, immutable'),
  });
}
