import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';

/** Lowercase only: it is the one form that upstream sends, and one accepted form is one fewer to reason about. */
const HEADER = /^sha256=([0-9a-f]{64})$/;

/** Whether a header (X-Hub-Signature-256) has the form of a signature, before there is a body to compare it with. */
export function isUpstreamSignature(header: unknown): header is string {
  return typeof header === 'string' && HEADER.test(header);
}

/**
 * Whether `header` (X-Hub-Signature-256) signs exactly `rawBody` with one of the app secrets; several are in force
 * while a secret is exchanged. Constant time for a header of the right form. Never throws: a missing or malformed
 * header and an empty list are simply false, and an empty secret is skipped because anybody could sign with it.
 */
export function verifyUpstreamSignature(
  rawBody: Uint8Array,
  header: string | undefined,
  secrets: readonly string[],
): boolean {
  const hex = typeof header === 'string' ? HEADER.exec(header)?.[1] : undefined;
  if (hex === undefined) return false;
  const given = Buffer.from(hex, 'hex');
  let verified = false;
  for (const secret of secrets) {
    if (secret === '') continue;
    const expected = createHmac('sha256', keyOf(secret)).update(rawBody).digest();
    // No early exit, so that the time does not tell which secret matched.
    verified = timingSafeEqual(given, expected) || verified;
  }
  return verified;
}

/** Making a key anew costs more than the signature of a short body. */
const keys = new Map<string, KeyObject>();

function keyOf(secret: string): KeyObject {
  const key = keys.get(secret) ?? createSecretKey(secret, 'utf8');
  keys.set(secret, key);
  return key;
}
