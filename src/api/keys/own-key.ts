import { Type } from 'typebox';
import { API_KEY_SCOPES } from '../../keys/api-key.ts';
import { findApiKeyDetails } from '../../keys/api-key-store.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { dateTime, NoQuery, nullable, text } from '../external/schema-kit.ts';
import { documented } from '../openapi/documented.ts';
import { accountOf, SCOPES } from './api-key-auth.ts';

const OwnKey = Type.Object(
  {
    id: text('3'),
    prefix: text('ck_1f0a2b3c'),
    lastFour: text('9d2e'),
    name: text('shop server'),
    wabaId: text('900000000000101'),
    scopes: Type.Array(Type.Enum([...API_KEY_SCOPES]), { examples: [['read', 'send', 'manage_webhooks']] }),
    createdAt: dateTime('2026-11-01T08:00:00.000Z'),
    expiresAt: nullable(dateTime()),
    lastUsedAt: nullable(dateTime(), '2026-11-21T09:30:00.000Z'),
  },
  { title: 'ApiKey' },
);

/** GET /api/external/key: the key of this very request, whatever its scopes. */
export function ownKey(app: ExternalApp, { database }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'getOwnKey',
      summary: 'The key of this request',
      description: 'What is known about the API key that the request carries; never the key itself.',
      tag: 'Account',
      answers: { 200: { description: 'The key.' } },
    }),
    querystring: NoQuery,
    response: { 200: OwnKey },
  };
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
