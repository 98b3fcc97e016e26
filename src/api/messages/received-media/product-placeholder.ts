import { readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';

const IMAGE = readFileSync(new URL('./product-placeholder.png', import.meta.url));

/** GET and HEAD /assets/product-placeholder.png: stands in for the image of a product that has none. */
export function registerProductPlaceholder(app: FastifyInstance): void {
  app.get('/assets/product-placeholder.png', async (_request, reply) =>
    reply
      .headers({
        'content-type': 'image/png',
        'cache-control': 'public, max-age=86400',
        'cross-origin-resource-policy': 'cross-origin',
      })
      .send(IMAGE),
  );
}
