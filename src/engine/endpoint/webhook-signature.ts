import {
  createHmac,
  createPrivateKey,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';

/**
 * `secrets` are whole `whsec_…` texts, newest first; during a rotation there are several, and private keys
 * (`whsk_…`) beside them.
 */
export type SignatureInput = {
  secrets: readonly string[];
  id: string;
  timestampSeconds: number;
  body: Uint8Array;
};

/** The message never holds the secret. */
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

/** `whsec_` and the base64 of 32 random bytes. */
export function newWebhookSecret(): string {
  return `${SECRET_PREFIX}${randomBytes(SECRET_BYTES).toString('base64')}`;
}

/** `whsec_` and the base64 of 24 to 64 bytes, the range of Standard Webhooks. */
export function isWebhookSecret(text: unknown): text is string {
  return typeof text === 'string' && secretBytes(text) !== null;
}

/** `whsk_` and the base64 of the seed and the public key of ed25519. */
export function newSigningKey(): string {
  const { d, x } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  const bytes = [d ?? '', x ?? ''].map((part) => Buffer.from(part, 'base64url'));
  return `${PRIVATE_KEY_PREFIX}${Buffer.concat(bytes).toString('base64')}`;
}

/** `whpk_` and the base64 of the public key. Throws UnusableSignatureInputError. */
export function publicKeyOf(signingKey: string): string {
  return `${PUBLIC_KEY_PREFIX}${signingKeyBytes(signingKey).subarray(KEY_BYTES).toString('base64')}`;
}

/**
 * Standard Webhooks 1.0: one `v1,<base64 HMAC-SHA256 of id.timestamp.body>` per secret and one `v1a,<base64 ed25519 signature of the same>`
 * per private key, separated by spaces, in the order of the secrets. Throws UnusableSignatureInputError.
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

/** `X-Hub-Signature-256`: the upstream platform signs the raw body with the app secret, whatever its form. */
export function signAsUpstream(appSecret: string, body: Uint8Array): string {
  return `sha256=${createHmac('sha256', appSecret).update(body).digest('hex')}`;
}

type Secret = { text: string; key: KeyObject };

/** Of secrets in use; the oldest go first, so that rotated ones do not stay in memory for ever. */
const known = new Map<string, KeyObject>();
const MAX_KNOWN = 10_000;

/** Making a key again costs more than the signature of a short body. */
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
