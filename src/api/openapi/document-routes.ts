import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { documented } from './documented.ts';

const MAX_AGE_SECONDS = 300;

type Served = { path: string; operationId: string; title: string; read(scope: FastifyInstance): object };

const EXTERNAL: Served = {
  path: '/api/external/openapi.json',
  operationId: 'getOpenApiDocument',
  title: 'Heliograph External API',
  read: (scope) => scope.swagger(),
};

const PLATFORM: Served = {
  path: '/api/platform/openapi.json',
  operationId: 'getPlatformDocument',
  title: 'Heliograph Platform API',
  read: (scope) => scope.platformDocument(),
};

/** GET /api/external/openapi.json: the description of the API, without a key. */
export function openApiDocumentRoute(scope: FastifyInstance): void {
  documentRoute(scope, EXTERNAL);
}

/** GET /api/platform/openapi.json: the description of the platform API, without a key, where that API is. */
export function platformDocumentRoute(scope: FastifyInstance): void {
  documentRoute(scope, PLATFORM);
}

function documentRoute(scope: FastifyInstance, { path, operationId, title, read }: Served): void {
  let made: { json: string; etag: string } | null = null;
  const document = () => {
    made ??= withEntityTag(JSON.stringify(read(scope)));
    return made;
  };
  const example = { openapi: '3.1.0', info: { title, version: '1.0.0' }, paths: {} };
  const schema = {
    ...documented({
      operationId,
      summary: 'This document',
      description:
        'The OpenAPI 3.1 description of the API. It changes with releases only; `ETag` saves asking twice.',
      tag: 'Service',
      answers: { 200: { description: 'The document.', headers: ['ETag'] } },
    }),
    response: { 200: Type.Object({}, { additionalProperties: true, examples: [example] }) },
  };
  scope.get(path, { schema }, (request, reply: FastifyReply) => {
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
