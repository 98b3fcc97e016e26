import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fastifySwaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';

/** Nothing leaves the host, and no script or style stands in the page itself. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** GET /docs: the OpenAPI document for people, with everything it needs served from here. */
export function docsPage(app: FastifyInstance): void {
  const css = readFileSync(join(import.meta.dirname, 'docs-page.css'), 'utf8');
  app.register(fastifySwaggerUi, {
    routePrefix: '/docs',
    staticCSP: CONTENT_SECURITY_POLICY,
    theme: { title: 'External API · Heliograph', css: [{ filename: 'docs-page.css', content: css }] },
    uiConfig: {
      // The standalone layout has a bar that asks for the address of a document.
      layout: 'BaseLayout',
      deepLinking: true,
      displayRequestDuration: true,
      docExpansion: 'list',
      defaultModelsExpandDepth: 0,
      defaultModelExpandDepth: 2,
    },
    // What is tried out here goes to the host that shows the page, as the policy demands.
    transformSpecification: (document) => ({ ...document, servers: [{ url: '/' }] }),
    transformSpecificationClone: false,
  });
}
