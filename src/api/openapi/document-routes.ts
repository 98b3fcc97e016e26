import { createHash } from 'node:crypto';
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
