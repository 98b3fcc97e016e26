import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { accountDocs } from './account-docs.ts';

const ConnectionTest = Type.Object({ status: Type.Literal('ok') });

/** GET /api/external/test: says that the API can be reached, whatever the Authorization header holds. */
export function connectionTest(scope: FastifyInstance): void {
  scope.get(
    '/api/external/test',
    { schema: { ...accountDocs.connectionTest, response: { 200: ConnectionTest } } },
    async () => ({ status: 'ok' }),
  );
}
