import {
  createHmac,
  createPrivateKey,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import packageJson from '../../package.json' with { type: 'json' };
import { publicDeliveryId, publicEventId } from '../platform/public-ids.ts';

/** Form of the signature that an endpoint asked for; `standard` is the default. */
export type SignatureProfile = 'standard' | 'github' | 'stripe';

/**
 * What is signed. `secrets` are whole `whsec_…` texts, newest first; during a rotation there are several. For
 * `signStandard` alone there may be private keys (`whsk_…`) too.
 */
export type SignatureInput = {
  secrets: readonly string[];
  id: string;
  timestampSeconds: number;
  body: Uint8Array;
};

/** A secret, id or time that cannot be signed with. The message never holds the secret. */
export class UnusableSignatureInputError extends Error {
  constructor(problem: string) {
    super(problem);
    this.name = 'UnusableSignatureInputError';
  }
}

const SECRET_PREFIX = 'whsec_';
const SECRET_BYTES = 32;
const PRIVATE_KEY_PREFIX = 'whsk_';
const PUBLIC_KEY_PREFIX = 'whpk_';
/** Of an ed25519 private key and of its public key; `whsk_` holds both, one behind the other. */
const KEY_BYTES = 32;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** A new endpoint secret: `whsec_` and the base64 of 32 random bytes. */
export function newWebhookSecret(): string {
  return `${SECRET_PREFIX}${randomBytes(SECRET_BYTES).toString('base64')}`;
}

/** Whether `text` is a usable secret: `whsec_` and the base64 of 24 to 64 bytes, the range of Standard Webhooks. */
export function isWebhookSecret(text: unknown): text is string {
  return typeof text === 'string' && secretBytes(text) !== null;
}

/** A new ed25519 private key: `whsk_` and the base64 of its seed and its public key. */
export function newSigningKey(): string {
  const { d, x } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  const bytes = [d ?? '', x ?? ''].map((part) => Buffer.from(part, 'base64url'));
  return `${PRIVATE_KEY_PREFIX}${Buffer.concat(bytes).toString('base64')}`;
}

/** What receivers verify with: `whpk_` and the base64 of the public key. Throws UnusableSignatureInputError. */
export function publicKeyOf(signingKey: string): string {
  return `${PUBLIC_KEY_PREFIX}${signingKeyBytes(signingKey).subarray(KEY_BYTES).toString('base64')}`;
}

/**
 * Signs as Standard Webhooks 1.0 does: one `v1,<base64 HMAC-SHA256 of id.timestamp.body>` per secret and one
 * `v1a,<base64 ed25519 signature of the same>` per private key, separated by spaces, in the order of the secrets.
 * Throws UnusableSignatureInputError.
 */
export function signStandard({ secrets, id, timestampSeconds, body }: SignatureInput): string {
  if (id === '' || id.includes('.')) throw new UnusableSignatureInputError('The id is empty or holds a dot.');
  const head = `${id}.${checkedTimestamp(timestampSeconds)}.`;
  return checkedSecrets(secrets)
    .map(({ key }) =>
      key.type === 'private'
        ? `v1a,${sign(null, Buffer.concat([Buffer.from(head), body]), key).toString('base64')}`
        : `v1,${createHmac('sha256', key).update(head).update(body).digest('base64')}`,
    )
    .join(' ');
}

/**
 * Signs in the form of an endpoint's profile. `github` is `sha256=<hex>` over the body by the newest secret, because
 * its receivers read one signature only; `stripe` is `t=<seconds>,v1=<hex>` over `t.body`, one `v1` per secret.
 * Both use the whole text of the secret as the key, as their verifiers do. Throws UnusableSignatureInputError.
 */
export function signWith(profile: SignatureProfile, input: SignatureInput): string {
  switch (profile) {
    case 'standard':
      return signStandard(input);
    case 'github': {
      const [newest] = checkedSecrets(input.secrets);
      return `sha256=${hexHmac(newest.text, input.body)}`;
    }
    case 'stripe': {
      const timestamp = checkedTimestamp(input.timestampSeconds);
      const parts = checkedSecrets(input.secrets).map(
        ({ text }) => `v1=${hexHmac(text, `${timestamp}.`, input.body)}`,
      );
      return [`t=${timestamp}`, ...parts].join(',');
    }
  }
}

function hexHmac(key: string, ...parts: (string | Uint8Array)[]): string {
  const hmac = createHmac('sha256', key);
  for (const part of parts) hmac.update(part);
  return hmac.digest('hex');
}

type Secret = { text: string; key: KeyObject };

/** Of secrets in use; the oldest go first, so that rotated ones do not stay in memory for ever. */
const known = new Map<string, KeyObject>();
const MAX_KNOWN = 10_000;

/** Making a key anew costs more than the signature of a short body. */
function keyOf(text: string): KeyObject | null {
  const cached = known.get(text);
  if (cached !== undefined) return cached;
  const key = text.startsWith(PRIVATE_KEY_PREFIX) ? privateKeyOf(text) : secretKeyOf(text);
  if (key === null) return null;
  const [oldest] = known.keys();
  if (known.size >= MAX_KNOWN && oldest !== undefined) known.delete(oldest);
  known.set(text, key);
  return key;
}

function secretKeyOf(text: string): KeyObject | null {
  const bytes = secretBytes(text);
  return bytes === null ? null : createSecretKey(bytes);
}

function privateKeyOf(signingKey: string): KeyObject {
  const bytes = signingKeyBytes(signingKey);
  const d = bytes.subarray(0, KEY_BYTES).toString('base64url');
  const x = bytes.subarray(KEY_BYTES).toString('base64url');
  return createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' });
}

function signingKeyBytes(signingKey: string): Buffer {
  const bytes = Buffer.from(signingKey.slice(PRIVATE_KEY_PREFIX.length), 'base64');
  if (signingKey.startsWith(PRIVATE_KEY_PREFIX) && bytes.length === 2 * KEY_BYTES) return bytes;
  throw new UnusableSignatureInputError('A signing key has the wrong form.');
}

function checkedSecrets(secrets: readonly string[]): [Secret, ...Secret[]] {
  const [first, ...others] = secrets.map((text) => {
    const key = keyOf(text);
    if (key === null) throw new UnusableSignatureInputError('A webhook secret has the wrong form.');
    return { text, key };
  });
  if (first === undefined) throw new UnusableSignatureInputError('There is no webhook secret to sign with.');
  return [first, ...others];
}

function secretBytes(text: string): Buffer | null {
  const encoded = text.slice(SECRET_PREFIX.length);
  if (!text.startsWith(SECRET_PREFIX) || encoded.length > 88 || !BASE64.test(encoded)) return null;
  const bytes = Buffer.from(encoded, 'base64');
  return bytes.length >= 24 && bytes.length <= 64 ? bytes : null;
}

function checkedTimestamp(timestampSeconds: number): number {
  if (Number.isSafeInteger(timestampSeconds) && timestampSeconds >= 0) return timestampSeconds;
  throw new UnusableSignatureInputError('The timestamp is not a whole number of seconds.');
}

/** What the headers of one webhook attempt say. `attempt` counts from 1; `sequence` counts within one ordering key. */
type WebhookHeadersInput = {
  /** Our own event id: the same over attempts, endpoints and replays, without a dot. */
  webhookId: string;
  timestampSeconds: number;
  /** The Standard Webhooks list. */
  signature: string;
  /** Takes the place of the list in X-Service-Signature when the endpoint has another signature profile. */
  profileSignature?: string | undefined;
  eventType: string;
  /** The event's `eventId` exactly as in the body; not unique and possibly not ASCII. */
  eventId: string;
  deliveryId: string;
  attempt: number;
  sequence: number | string | bigint;
  replay: boolean;
};

/** `User-Agent` of this version. */
export const USER_AGENT = `Heliograph/${packageJson.version}`;

/** The headers of one webhook attempt. Everything that differs between attempts is here, never in the body. */
export function webhookHeaders(input: WebhookHeadersInput): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    'X-Service-Signature': input.profileSignature ?? input.signature,
    'webhook-id': input.webhookId,
    'webhook-timestamp': String(input.timestampSeconds),
    'webhook-signature': input.signature,
    'Idempotency-Key': input.webhookId,
    'X-Service-Event-Type': input.eventType,
    'X-Service-Event-Id': percentEncode(input.eventId),
    'X-Service-Delivery-Id': input.deliveryId,
    'X-Service-Attempt': String(input.attempt),
    'X-Service-Sequence': String(input.sequence),
    ...(input.replay ? { 'X-Service-Replay': 'true' } : {}),
  };
}

/** What the log knows of a request; null: the event is gone from it. */
type LoggedRequest = {
  delivery: { id: string; eventUuid: string; replayId: string | null };
  event: { eventType: string | null; eventId: string | null; sequence: string | null };
  attempt: { attempt: number; startedAt: Date; userAgent: string; customHeaders: string | null };
};

/**
 * The headers that an attempt was sent with, as far as they are known. Signatures are left out: a reader of the log must not
 * be able to replay a request with them. Of the tenant's headers the names are known, not the values.
 */
export function sentHeaders({ delivery, event, attempt }: LoggedRequest): Record<string, string> {
  const own = webhookHeaders({
    webhookId: publicEventId(delivery.eventUuid),
    timestampSeconds: Math.floor(attempt.startedAt.getTime() / 1000),
    signature: '',
    eventType: event.eventType ?? '',
    eventId: event.eventId ?? '',
    deliveryId: publicDeliveryId(delivery.id),
    attempt: attempt.attempt,
    sequence: event.sequence ?? '',
    replay: delivery.replayId !== null,
  });
  const custom = attempt.customHeaders?.split(',').map((name) => [name, '(not shown)']) ?? [];
  const known = Object.entries({ ...own, 'user-agent': attempt.userAgent }).filter(
    ([, value]) => value !== '',
  );
  return Object.fromEntries([...custom, ...known]);
}

/**
 * Encodes what a header cannot carry: UTF-8 bytes outside visible ASCII, and the percent sign itself so that
 * decodeURIComponent restores the text.
 */
function percentEncode(text: string): string {
  return text.replace(/[^\x21-\x7e]+|%/gu, (part) =>
    Array.from(
      Buffer.from(part, 'utf8'),
      (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    ).join(''),
  );
}

const RESERVED_NAMES = new Set(
  `accept-encoding authority connection content-encoding content-length content-type cookie cookie2 date expect
   forwarded host http2-settings idempotency-key keep-alive origin proxy-authenticate proxy-authorization
   proxy-connection referer set-cookie te trailer transfer-encoding upgrade user-agent via`.split(/\s+/),
);
const RESERVED_PREFIXES = ['x-service-', 'webhook-', 'x-forwarded-', 'sec-', ':'];

/**
 * Whether a tenant's custom header may not have this name: ours, those that say where and how the body is sent,
 * and those that a browser or a proxy would set. Case does not matter.
 */
export function isReservedHeader(name: string): boolean {
  const lowered = name.trim().toLowerCase();
  return RESERVED_NAMES.has(lowered) || RESERVED_PREFIXES.some((prefix) => lowered.startsWith(prefix));
}
