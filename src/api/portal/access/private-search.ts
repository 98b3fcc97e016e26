import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { sessionCookie } from './session-cookie.ts';

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const SEALED = /^[A-Za-z0-9_-]{38,4096}$/;

/** Phone numbers and ids of upstream must not stand in addresses, which logs keep. Only this session can read it. */
export function sealSearch(request: FastifyRequest, text: string): string {
  const key = keyOf(request);
  if (key === null) throw new Error('a search needs a session');
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce);
  const sealed = [cipher.update(text, 'utf8'), cipher.final()];
  return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]).toString('base64url');
}

/** The text of `sealSearch`; null when another session made it, or when it was changed. */
export function openSearch(request: FastifyRequest, sealed: string): string | null {
  const key = keyOf(request);
  if (key === null || !SEALED.test(sealed)) return null;
  const bytes = Buffer.from(sealed, 'base64url');
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  try {
    const text = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([text, decipher.final()]).toString('utf8');
  } catch {
    return null;
  }
}

/** The database holds only a hash of the cookie: when the session is over, its searches cannot be opened. */
function keyOf(request: FastifyRequest): Buffer | null {
  const token = sessionCookie.read(request);
  return token === null ? null : Buffer.from(hkdfSync('sha256', token, '', 'heliograph portal search', 32));
}
