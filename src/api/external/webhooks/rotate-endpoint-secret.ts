import { Type } from 'typebox';
import { rotateSecret } from '../../../accounts/endpoint-secrets.ts';
import { accountOf, apiActorOf } from '../../plugins/api-key-auth.ts';
import { SCOPES } from '../../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from '../external-app.ts';
import { NoQuery } from '../no-query.ts';
import { nullable } from '../nullable.ts';
import { accountObjectId } from '../object-id.ts';
import { endpointDocs } from './endpoint-docs.ts';
import { IdParams } from './endpoint-schemas.ts';

const Rotation = Type.Object(
  {
    overlapHours: Type.Optional(Type.Number({ minimum: 0, maximum: 168 })),
    secret: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);

const RotatedSecret = Type.Object(
  {
    id: Type.String(),
    secret: Type.String(),
    previousSecretExpiresAt: nullable(Type.String({ format: 'date-time' })),
  },
  { title: 'RotatedSecret' },
);

/** POST /api/external/webhook-endpoints/:id/rotate-secret: the new secret is in this answer only. */
export function rotateWebhookEndpointSecret(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...endpointDocs.rotateSecret,
    params: IdParams,
    querystring: NoQuery,
    body: Rotation,
    response: { 200: RotatedSecret },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.post('/api/external/webhook-endpoints/:id/rotate-secret', options, async (request) => {
    const { wabaId } = accountOf(request);
    const endpointId = accountObjectId(request.params.id);
    const rotated = await rotateSecret(
      { ...accounts, actor: apiActorOf(request) },
      wabaId,
      endpointId,
      request.body,
    );
    return {
      ...rotated,
      previousSecretExpiresAt: rotated.previousSecretExpiresAt?.toISOString() ?? null,
    };
  });
}
