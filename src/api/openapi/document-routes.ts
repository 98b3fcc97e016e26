import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fastifySwaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { documented } from './documented.ts';

const MAX_AGE_SECONDS = 300;

const PATH = '/api/external/openapi.json';

const OpenApiDocument = Type.Object(
  {},
  {
    additionalProperties: true,
    examples: [{ openapi: '3.1.0', info: { title: 'Heliograph External API', version: '1.0.0' }, paths: {} }],
  },
);

const docs = documented({
  operationId: 'getOpenApiDocument',
  summary: 'This document',
  description:
    'The OpenAPI 3.1 description of the API. It changes with releases only; `ETag` saves asking twice.',
  tag: 'Service',
  answers: {
    200: {
      description: 'The document.',
      headers: ['ETag'],
    },
  },
});

/** GET /api/external/openapi.json: the description of the API, without a key. */
export function openApiDocumentRoute(scope: FastifyInstance): void {
  let made: { json: string; etag: string } | null = null;
  const document = () => {
    made ??= withEntityTag(JSON.stringify(scope.swagger()));
    return made;
  };
  const schema = { ...docs, response: { 200: OpenApiDocument } };
  scope.get(PATH, { schema }, (request, reply: FastifyReply) => {
    const { json, etag } = document();
    reply.header('cache-control', `public, max-age=${MAX_AGE_SECONDS}`).header('etag', etag);
    if (request.headers['if-none-match']?.includes(etag)) return reply.code(304).send();
    return reply.type('application/json; charset=utf-8').serializer(String).send(json);
  });
}

function withEntityTag(json: string): { json: string; etag: string } {
  const digest = createHash('sha256').update(json).digest('base64url').slice(0, 22);
  return { json, etag: `"${digest}"` };
}

export const EXPLORER_PATH = '/docs/explorer';

/** Nothing leaves the host, and no script or style stands in the page itself. */
export const STRICT_SCRIPT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** GET /docs/explorer: the OpenAPI document to try out, with everything it needs served from here. */
export function explorerPage(app: FastifyInstance): void {
  const css = readFileSync(join(import.meta.dirname, 'docs-page.css'), 'utf8');
  app.register(fastifySwaggerUi, {
    routePrefix: EXPLORER_PATH,
    staticCSP: STRICT_SCRIPT_POLICY,
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
    transformSpecification: (document) => ({
      ...document,
      info: { ...document.info, description: `[← Documentation](/docs/)\n\n${document.info.description}` },
      servers: [{ url: '/' }],
    }),
    transformSpecificationClone: false,
  });
}
