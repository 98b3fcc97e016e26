import { Type } from 'typebox';
import { EVENT_TYPES } from '../../../domain/event-type.ts';
import { nullable } from '../nullable.ts';

const DATE_TIME = Type.String({ format: 'date-time' });

const SIGNATURE_PROFILES = ['standard', 'github', 'stripe'] as const;
const ORDER_SCOPES = ['event', 'conversation', 'endpoint'] as const;

const MAX_IN_FLIGHT =
  'Most requests under way at once. Divided among the worker processes of the installation, of which each may make at least one.';

/** What may be chosen for an endpoint; null goes back to the default. */
const OPTIONS = {
  description: Type.Optional(nullable(Type.String())),
  eventTypes: Type.Optional(nullable(Type.Array(Type.Enum([...EVENT_TYPES]), { minItems: 1, maxItems: 20 }))),
  phoneNumberIds: Type.Optional(nullable(Type.Array(Type.String(), { minItems: 1, maxItems: 1_000 }))),
  customHeaders: Type.Optional(nullable(Type.Record(Type.String(), nullable(Type.String())))),
  retryScheduleSeconds: Type.Optional(nullable(Type.Array(Type.Integer(), { minItems: 1, maxItems: 20 }))),
  timeoutMs: Type.Optional(nullable(Type.Integer())),
  signatureProfile: Type.Optional(nullable(Type.Enum([...SIGNATURE_PROFILES]))),
  maxInFlight: Type.Optional(nullable(Type.Integer({ description: MAX_IN_FLIGHT }))),
  rateLimitPerSecond: Type.Optional(nullable(Type.Integer())),
  blockLimitSeconds: Type.Optional(nullable(Type.Integer())),
  orderScope: Type.Optional(nullable(Type.Enum([...ORDER_SCOPES]))),
};

export const NewEndpoint = Type.Object(
  { url: Type.String(), ...OPTIONS },
  { title: 'NewWebhookEndpoint', additionalProperties: false },
);

export const EndpointChange = Type.Object(
  { url: Type.Optional(Type.String()), ...OPTIONS },
  { title: 'WebhookEndpointChange', additionalProperties: false },
);

export const Waiting = Type.Object(
  {
    count: Type.Integer(),
    more: Type.Boolean(),
    due: Type.Integer(),
    queued: Type.Integer(),
    held: Type.Integer({ description: 'Not to be sent yet: `unreleased` and `suspended` together.' }),
    unreleased: Type.Integer({ description: 'Their event has no body yet.' }),
    suspended: Type.Integer({ description: 'Their replay is paused.' }),
    retrying: Type.Integer(),
    claimed: Type.Integer(),
    oldestMs: nullable(Type.Number()),
  },
  { title: 'WaitingDeliveries' },
);

const ENDPOINT_MEMBERS = {
  id: Type.String(),
  url: Type.String(),
  description: Type.String(),
  eventTypes: nullable(Type.Array(Type.Enum([...EVENT_TYPES]))),
  phoneNumberIds: nullable(Type.Array(Type.String())),
  customHeaderNames: nullable(Type.Array(Type.String())),
  retryScheduleSeconds: nullable(Type.Array(Type.Integer())),
  timeoutMs: nullable(Type.Integer()),
  signatureProfile: Type.Enum([...SIGNATURE_PROFILES]),
  maxInFlight: nullable(Type.Integer({ description: MAX_IN_FLIGHT })),
  rateLimitPerSecond: nullable(Type.Integer()),
  blockLimitSeconds: nullable(Type.Integer()),
  orderScope: Type.Enum([...ORDER_SCOPES]),
  wantedOrderScope: nullable(Type.Enum([...ORDER_SCOPES])),
  mode: Type.Enum(['open', 'probing', 'paused', 'disabled']),
  modeReason: nullable(Type.String()),
  modeChangedAt: DATE_TIME,
  failingSince: nullable(DATE_TIME),
  nextProbeAt: nullable(DATE_TIME),
  previousSecretExpiresAt: nullable(DATE_TIME),
  createdAt: DATE_TIME,
  updatedAt: DATE_TIME,
};

/** An endpoint with what waits for it. */
export const EndpointWithWaiting = Type.Object(
  { ...ENDPOINT_MEMBERS, waiting: Waiting },
  { title: 'WebhookEndpoint' },
);

/** An endpoint that was changed, and what another origin of its URL meant for its secrets. */
export const ChangedEndpoint = Type.Object(
  {
    ...ENDPOINT_MEMBERS,
    waiting: Waiting,
    droppedHeaderNames: Type.Array(Type.String()),
    secretRotationAdvised: Type.Boolean(),
  },
  { title: 'ChangedWebhookEndpoint' },
);

/** A new endpoint, with the secret that is shown this once. */
export const CreatedEndpoint = Type.Object(
  { ...ENDPOINT_MEMBERS, secret: Type.String() },
  { title: 'CreatedWebhookEndpoint' },
);

export const IdParams = Type.Object({ id: Type.String() });
