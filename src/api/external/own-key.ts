import { Type } from 'typebox';
import { findApiKeyDetails } from '../../database/api-key-admin.ts';
import { API_KEY_SCOPES } from '../../domain/api-key-scopes.ts';
import { accountOf } from '../plugins/api-key-auth.ts';
import { SCOPES } from '../plugins/key-scopes.ts';
import { accountDocs } from './account-docs.ts';
import type { ExternalApp, ExternalContext } from './external-app.ts';
import { NoQuery } from './no-query.ts';
import { nullable } from './nullable.ts';

const DATE_TIME = Type.String({ format: 'date-time' });

const OwnKey = Type.Object(
  {
    id: Type.String(),
    prefix: Type.String(),
    lastFour: Type.String(),
    name: Type.String(),
    wabaId: Type.String(),
    scopes: Type.Array(Type.Enum([...API_KEY_SCOPES])),
    createdAt: DATE_TIME,
    expiresAt: nullable(DATE_TIME),
    lastUsedAt: nullable(DATE_TIME),
  },
  { title: 'ApiKey' },
);

/** GET /api/external/key: the key of this very request, whatever its scopes. */
export function ownKey(app: ExternalApp, { database }: ExternalContext): void {
  const schema = { ...accountDocs.ownKey, querystring: NoQuery, response: { 200: OwnKey } };
  app.get('/api/external/key', { schema, config: SCOPES.any }, async (request) => {
    const { wabaId, keyId } = accountOf(request);
    const key = await findApiKeyDetails(database, wabaId, keyId);
    if (key === null) throw new Error('the API key of a request is missing');
    const { state, revokedAt, ...shown } = key;
    return {
      ...shown,
      createdAt: key.createdAt.toISOString(),
      expiresAt: key.expiresAt?.toISOString() ?? null,
      lastUsedAt: key.lastUsedAt?.toISOString() ?? null,
    };
  });
}
