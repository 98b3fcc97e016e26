import { type TSchema, type TUnsafe, Type } from 'typebox';
import {
  type AnySetting,
  type SettingName,
  type StoredSettings,
  settingsOf,
} from '../../engine/endpoint/settings.ts';
import type { EndpointOptions } from '../../features/endpoints/endpoint-options.ts';
import { endpointForOperator } from '../../features/endpoints/endpoints.ts';
import type { Database } from '../../platform/postgres/database.ts';
import {
  accountObjectPath,
  count,
  dateTime,
  named,
  namedClosed,
  nullable,
  text,
} from '../external/schema-kit.ts';

export const ENDPOINTS_PATH = '/api/external/webhook-endpoints';

const DATE_TIME = dateTime('2026-11-20T10:00:00.000Z');

const EXAMPLE_ID = '3';

export const EXAMPLE_SECRET = `whsec_${'MfKQ9r8GKYqrTwjU'.repeat(2)}`;

export const EXAMPLE_PUBLIC_KEY = 'whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=';

const EXAMPLE_FINGERPRINT = Array.from({ length: 16 }, () => '3F:A1').join(':');

const FIRST = settingsOf('where', 'what');
const THEN = settingsOf('retries', 'signature', 'limits', 'order');

/** Null goes back to the default. */
const OPTIONS = {
  ...requestMembers(FIRST),
  customHeaders: Type.Optional(nullable(Type.Record(Type.String(), nullable(Type.String())))),
  appSecret: Type.Optional(
    Type.String({
      description:
        'For the format `meta`: the secret of `X-Hub-Signature-256`, a text of at least 16 characters. Without it, one is generated.',
    }),
  ),
  verifyToken: Type.Optional(
    Type.String({
      description:
        'For the format `meta`: the URL is verified with this token first, as the upstream platform does it (`hub.challenge`). It is not stored.',
    }),
  ),
  ...requestMembers(THEN),
};

function requestMembers(settings: readonly [string, AnySetting][]): Record<string, TSchema> {
  return Object.fromEntries(settings.map(([name, { request }]) => [name, Type.Optional(nullable(request))]));
}

type Answers = { [Name in SettingName]: TUnsafe<StoredSettings[Name]> };

/** Typed as the members of all settings, which `FIRST` and `THEN` are together. */
function answerMembers(settings: readonly [string, AnySetting][]): Answers {
  const members = settings.map(([name, { answer, fallback, example }]) => [
    name,
    fallback === null ? nullable(answer, example) : { ...answer, examples: [example] },
  ]);
  return Object.fromEntries(members);
}

export const NewEndpoint = Type.Unsafe<EndpointOptions & { url: string }>(
  namedClosed('NewWebhookEndpoint', { url: Type.String(), ...OPTIONS }),
);

export const EndpointChange = Type.Unsafe<EndpointOptions>(
  namedClosed('WebhookEndpointChange', { url: Type.Optional(Type.String()), ...OPTIONS }),
);

export const Waiting = named('WaitingDeliveries', {
  count: count(2),
  more: Type.Boolean(),
  due: count(1),
  queued: Type.Integer(),
  held: Type.Integer({ description: 'Not to be sent yet: `unreleased` and `suspended` together.' }),
  unreleased: Type.Integer({
    description: 'Their event has no body yet, or waits for other messages of its conversation.',
  }),
  suspended: Type.Integer({ description: 'Their replay is paused.' }),
  retrying: count(1),
  claimed: Type.Integer(),
  oldestMs: nullable(Type.Number(), 4_200),
});

const ENDPOINT_MEMBERS = {
  id: text(EXAMPLE_ID),
  url: text('https://shop.example/hook'),
  ...answerMembers(FIRST),
  customHeaderNames: nullable(Type.Array(Type.String()), ['X-Token']),
  ...answerMembers(THEN),
  mode: Type.Enum(['open', 'probing', 'paused', 'disabled']),
  modeReason: nullable(Type.String()),
  modeChangedAt: DATE_TIME,
  failingSince: nullable(DATE_TIME),
  nextProbeAt: nullable(DATE_TIME),
  previousSecretExpiresAt: nullable(DATE_TIME),
  publicKeys: nullable(
    Type.Array(
      Type.Object({
        publicKey: text(EXAMPLE_PUBLIC_KEY),
        expiresAt: nullable({ ...DATE_TIME, description: 'Null: the current key.' }),
      }),
      {
        description:
          'Public keys that verify the `v1a` signatures, the current key first; empty unless `asymmetricSignature` is `ed25519`.',
      },
    ),
    [],
  ),
  clientCertificate: nullable(
    Type.Object({
      subject: text('CN=heliograph.shop.example'),
      issuer: text('CN=Shop CA'),
      fingerprint: text(EXAMPLE_FINGERPRINT),
      expiresAt: DATE_TIME,
    }),
    null,
  ),
  createdAt: DATE_TIME,
  updatedAt: DATE_TIME,
};

const STATUS_MEMBERS = {
  ...ENDPOINT_MEMBERS,
  recoveringSince: nullable({
    ...DATE_TIME,
    description:
      'Since when the endpoint accepts deliveries again, while deliveries that waited for that are being sent; null: none are.',
  }),
  waiting: Waiting,
};

export const EndpointWithWaiting = named('WebhookEndpoint', STATUS_MEMBERS);

const APP_SECRET = nullable(
  Type.String({ description: 'The app secret that was made, shown this once; null: none was made.' }),
);

export const ChangedEndpoint = named('ChangedWebhookEndpoint', {
  ...STATUS_MEMBERS,
  droppedHeaderNames: Type.Array(Type.String(), { examples: [[]] }),
  secretRotationAdvised: Type.Boolean(),
  appSecret: APP_SECRET,
  sameUrlEndpointIds: Type.Array(text('3'), { examples: [[]] }),
});

export const CreatedEndpoint = named('CreatedWebhookEndpoint', {
  ...ENDPOINT_MEMBERS,
  secret: text(EXAMPLE_SECRET),
  appSecret: APP_SECRET,
  sameUrlEndpointIds: Type.Array(text('3'), { examples: [[]] }),
});

export const OF_ENDPOINT = {
  tag: 'Webhook endpoints' as const,
  ...accountObjectPath('The id of the endpoint.', EXAMPLE_ID),
};

/** Throws RequestError: `invalid_value`, `unknown_endpoint`. */
export async function wabaOfEndpoint(tools: { database: Database }, id: string): Promise<string> {
  return (await endpointForOperator(tools, id)).wabaId;
}
