import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { documented } from '../openapi/documented.ts';

const ConnectionTest = Type.Object({ status: Type.Literal('ok') });

const docs = documented({
  operationId: 'testConnection',
  summary: 'Whether the API can be reached',
  description: 'Needs no API key and looks at none. To test a key, ask `GET /me`.',
  tag: 'Service',
  answers: { 200: { description: 'It can.' } },
});

/** GET /api/external/test: says that the API can be reached, whatever the Authorization header holds. */
export function connectionTest(scope: FastifyInstance): void {
  scope.get('/api/external/test', { schema: { ...docs, response: { 200: ConnectionTest } } }, async () => ({
    status: 'ok',
  }));
}
