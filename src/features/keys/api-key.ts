import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const KEY_PREFIX = 'ck_';
const RANDOM_BYTES = 28;
const CHECK_DIGITS = 8;
const API_KEY = /^ck_[0-9a-f]{64}$/;
const PLATFORM_KEY = /^hp_[0-9a-f]{64}$/;

/**
 * A new API key: `ck_` and 64 hex digits, 224 random bits of which the last 8 digits are the CRC32 of the 56 before
 * them. The checksum lets secret scanners tell a key from a look-alike offline. Nothing here requires it, so that keys
 * made elsewhere work too; they are looked up behind the others. `random` is for tests.
 */
export function newApiKey(random: (sizeBytes: number) => Uint8Array = randomBytes): string {
  return newKey(KEY_PREFIX, random);
}

/** A key of the operator's own program, as `newApiKey` makes them but for its prefix: neither is taken for the other. */
export function newPlatformKey(): string {
  return newKey('hp_', randomBytes);
}

function newKey(prefix: string, random: (sizeBytes: number) => Uint8Array): string {
  const hex = Buffer.from(random(RANDOM_BYTES)).toString('hex');
  return `${prefix}${hex}${checkDigitsOf(hex)}`;
}

/** Whether `text` has the form of an API key, whatever its checksum. */
export function isApiKey(text: unknown): text is string {
  return typeof text === 'string' && API_KEY.test(text);
}

/** Whether `text` has the form of a platform key, whatever its checksum. */
export function isPlatformKey(text: unknown): text is string {
  return typeof text === 'string' && PLATFORM_KEY.test(text);
}

/** Whether the last 8 digits of a key are those of keys that were made here; others may be right nevertheless. */
export function hasRightCheckDigits(key: string): boolean {
  const hex = key.slice(KEY_PREFIX.length, -CHECK_DIGITS);
  return checkDigitsOf(hex) === key.slice(-CHECK_DIGITS);
}

function checkDigitsOf(hex: string): string {
  return crc32(hex).toString(16).padStart(CHECK_DIGITS, '0');
}

/** SHA-256. One fast hash is enough: guessing 2^224 is hopeless, and a slow one would only add latency. */
export function hashApiKey(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

/** The parts of a key that may be shown for good: its prefix with the first 8 digits, and the last 4. */
export function apiKeyHints(key: string): { prefix: string; last4: string } {
  return { prefix: key.slice(0, KEY_PREFIX.length + 8), last4: key.slice(-4) };
}

/**
 * What a key may be limited to: reading all, reading events with their bodies, sending messages, changing webhook
 * endpoints and sending events again, exporting all data of a customer, erasing it, and of upstream's own API through us
 * (src/api/graph) sending, files and reading; changing what the WABA has there; and standing in the query of its addresses.
 */
export const API_KEY_SCOPES = [
  'read',
  'read_events',
  'send',
  'manage_webhooks',
  'export',
  'erase',
  'graph',
  'graph_manage',
  'graph_query',
] as const;

export const LEAST_SCOPES: readonly ApiKeyScope[] = ['read'];

/** What a key has that is stored without scopes, as of a tenant that is set up by script. */
export const DEFAULT_SCOPES: readonly ApiKeyScope[] = ['read', 'send', 'manage_webhooks'];

export type ApiKeyScope = (typeof API_KEY_SCOPES)[number];
