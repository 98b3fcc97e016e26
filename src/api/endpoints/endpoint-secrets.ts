import { Type } from 'typebox';
import { rotateSecret, rotateSigningKey } from '../../features/endpoints/endpoint-secrets.ts';
import { alignedFields } from '../../platform/cli/admin-action.ts';
import { readStdin } from '../../platform/cli/given-text.ts';
import { closed, dateTime, named, nullable, text } from '../external/schema-kit.ts';
import { operation } from '../operations/operation.ts';
import { EXAMPLE_PUBLIC_KEY, EXAMPLE_SECRET, OF_ENDPOINT, wabaOfEndpoint } from './endpoint-schemas.ts';
import { untilText } from './endpoint-text.ts';

const OverlapHours = Type.Optional(Type.Number({ minimum: 0, maximum: 168 }));

const ROTATION = {
  method: 'POST',
  scope: 'manageWebhooks',
  requests: { 'a day of both': {}, 'at once': { overlapHours: 0 } },
  ...OF_ENDPOINT,
} as const;

const overlapOption = (help: string) => ({ flags: '--overlap-hours <hours>', help, default: 24 });

const RotatedSecret = named('RotatedSecret', {
  id: text('3'),
  secret: text(EXAMPLE_SECRET),
  previousSecretExpiresAt: nullable(dateTime(), '2026-11-22T09:30:00.000Z'),
});

export const rotateWebhookEndpointSecret = operation({
  id: 'rotateWebhookEndpointSecret',
  path: '/api/external/webhook-endpoints/:id/rotate-secret',
  ...ROTATION,
  summary: 'Rotate the secret of a webhook endpoint',
  description:
    '`secret` is in this answer only. The old secret signs too for `overlapHours`, 24 unless given. You may bring the new `secret`.',
  errors: ['secret_in_use'],
  body: closed({ overlapHours: OverlapHours, secret: Type.Optional(Type.String()) }),
  answers: { 200: { description: 'The new secret.', schema: RotatedSecret } },
  run: ({ tools, wabaId }, { id, ...rotation }) => rotateSecret(tools, wabaId, id, rotation),
  json: (rotated) => rotated,
  command: {
    name: 'endpoint rotate-secret',
    help: 'give an endpoint another signing secret and print it; the present secret signs too for a while',
    example: 'endpoint rotate-secret 3 --overlap-hours 48 --json',
    waba: wabaOfEndpoint,
    options: { overlapHours: overlapOption('how long both sign, 0 to 168; an older secret ends at once') },
    extend: (command) =>
      command.option(
        '--secret-stdin',
        "read the new secret from standard input: the tenant's own, whsec_ and base64",
      ),
    read: async ({ secretStdin }) => (secretStdin ? { secret: (await readStdin()).trim() } : {}),
    show: (rotated) => ({
      json: rotated,
      text: alignedFields([
        ['id', rotated.id],
        ['secret', rotated.secret],
        ['old secret', untilText(rotated.previousSecretExpiresAt)],
      ]),
    }),
  },
});

const RotatedSigningKey = named('RotatedSigningKey', {
  id: text('3'),
  publicKey: text(EXAMPLE_PUBLIC_KEY),
  previousKeyExpiresAt: nullable(dateTime(), '2026-11-22T09:30:00.000Z'),
});

export const rotateWebhookEndpointSigningKey = operation({
  id: 'rotateWebhookEndpointSigningKey',
  path: '/api/external/webhook-endpoints/:id/rotate-signing-key',
  ...ROTATION,
  summary: 'Rotate the signing key of a webhook endpoint',
  description:
    'For an endpoint with `asymmetricSignature`: `publicKey` verifies the signatures of the new private key. The old key signs too for `overlapHours`, 24 unless given.',
  errors: ['no_signing_key'],
  body: closed({ overlapHours: OverlapHours }),
  answers: { 200: { description: 'The new public key.', schema: RotatedSigningKey } },
  run: ({ tools, wabaId }, { id, ...rotation }) => rotateSigningKey(tools, wabaId, id, rotation),
  json: (rotated) => rotated,
  command: {
    name: 'endpoint rotate-signing-key',
    help: 'give an endpoint with a public-key signature another key pair and print the public key',
    example: 'endpoint rotate-signing-key 3 --overlap-hours 48 --json',
    waba: wabaOfEndpoint,
    options: { overlapHours: overlapOption('how long the present key signs too, 0 to 168') },
    show: (rotated) => ({
      json: rotated,
      text: alignedFields([
        ['id', rotated.id],
        ['public key', rotated.publicKey],
        ['old key', untilText(rotated.previousKeyExpiresAt)],
      ]),
    }),
  },
});
