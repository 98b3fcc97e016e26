import { Type } from 'typebox';
import { API_KEY_SCOPES } from '../../features/keys/api-key.ts';
import { findApiKeyDetails } from '../../features/keys/api-key-store.ts';
import { dateTime, named, nullable, text } from '../external/schema-kit.ts';
import { restOperation } from '../operations/operation.ts';

const OwnKey = named('ApiKey', {
  id: text('3'),
  prefix: text('ck_1f0a2b3c'),
  lastFour: text('9d2e'),
  name: text('shop server'),
  wabaId: text('900000000000101'),
  scopes: Type.Array(Type.Enum([...API_KEY_SCOPES]), { examples: [['read', 'send', 'manage_webhooks']] }),
  createdAt: dateTime('2026-11-01T08:00:00.000Z'),
  expiresAt: nullable(dateTime()),
  lastUsedAt: nullable(dateTime(), '2026-11-21T09:30:00.000Z'),
});

export const getOwnKey = restOperation({
  id: 'getOwnKey',
  method: 'GET',
  path: '/api/external/key',
  scope: 'any',
  summary: 'Get the key of this request',
  description: 'The name, scopes and times of the API key that the request carries; never the key itself.',
  tag: 'Account',
  answers: { 200: { schema: OwnKey, description: 'The key.' } },
  run: async ({ database, account: { wabaId, keyId } }) => {
    const key = await findApiKeyDetails(database, wabaId, keyId);
    if (key === null) throw new Error('the API key of a request is missing');
    const { state, revokedAt, ...shown } = key;
    return shown;
  },
});
