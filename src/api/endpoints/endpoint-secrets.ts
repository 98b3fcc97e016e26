import { Type } from 'typebox';
import { rotateSecret, rotateSigningKey } from '../../endpoints/endpoint-secrets.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { accountObjectId, dateTime, NoQuery, nullable, text } from '../external/schema-kit.ts';
import { accountOf, apiActorOf, SCOPES } from '../keys/api-key-auth.ts';
import { documented } from '../openapi/documented.ts';
import { EXAMPLE_PUBLIC_KEY, EXAMPLE_SECRET, IdParams } from './endpoint-schemas.ts';

const Rotation = Type.Object(
  {
    overlapHours: Type.Optional(Type.Number({ minimum: 0, maximum: 168 })),
    secret: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);

const RotatedSecret = Type.Object(
  {
    id: text('3'),
    secret: text(EXAMPLE_SECRET),
    previousSecretExpiresAt: nullable(dateTime(), '2026-11-22T09:30:00.000Z'),
  },
  { title: 'RotatedSecret' },
);

/** POST /api/external/webhook-endpoints/:id/rotate-secret: the new secret is in this answer only. */
export function rotateWebhookEndpointSecret(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'rotateWebhookEndpointSecret',
      summary: 'Give a webhook endpoint a new secret',
      description:
        '`secret` is in this answer only. The old one signs too for `overlapHours`, 24 unless given. Bring one of your own if you like.',
      tag: 'Webhook endpoints',
      errors: ['secret_in_use'],
      requests: { 'a day of both': {}, 'at once': { overlapHours: 0 } },
      answers: { 200: { description: 'The new secret.' } },
    }),
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

const KeyRotation = Type.Object(
  { overlapHours: Type.Optional(Type.Number({ minimum: 0, maximum: 168 })) },
  { additionalProperties: false },
);

const RotatedSigningKey = Type.Object(
  {
    id: text('3'),
    publicKey: text(EXAMPLE_PUBLIC_KEY),
    previousKeyExpiresAt: nullable(dateTime(), '2026-11-22T09:30:00.000Z'),
  },
  { title: 'RotatedSigningKey' },
);

/** POST /api/external/webhook-endpoints/:id/rotate-signing-key: the private key is never shown. */
export function rotateWebhookEndpointSigningKey(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'rotateWebhookEndpointSigningKey',
      summary: 'Give a webhook endpoint a new signing key',
      description:
        'For an endpoint with `asymmetricSignature`: `publicKey` verifies what the new private key signs. The old key signs too for `overlapHours`, 24 unless given.',
      tag: 'Webhook endpoints',
      errors: ['no_signing_key'],
      requests: { 'a day of both': {}, 'at once': { overlapHours: 0 } },
      answers: { 200: { description: 'The new public key.' } },
    }),
    params: IdParams,
    querystring: NoQuery,
    body: KeyRotation,
    response: { 200: RotatedSigningKey },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.post('/api/external/webhook-endpoints/:id/rotate-signing-key', options, async (request) => {
    const { wabaId } = accountOf(request);
    const tools = { ...accounts, actor: apiActorOf(request) };
    const rotated = await rotateSigningKey(tools, wabaId, accountObjectId(request.params.id), request.body);
    return { ...rotated, previousKeyExpiresAt: rotated.previousKeyExpiresAt?.toISOString() ?? null };
  });
}
