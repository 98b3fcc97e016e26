import { createHash } from 'node:crypto';
import { type JsonNode, textOf } from './json-text.ts';

/** Longest id that is accepted, in UTF-16 units; real ones have fewer than 140. */
export const MAX_ID_CHARS = 512;

/** An id of upstream is longer than MAX_ID_CHARS: cutting it would make it another id. */
class OversizedIdError extends Error {
  constructor(lengthChars: number) {
    super(`An id has ${lengthChars} characters, more than ${MAX_ID_CHARS}`);
    this.name = 'OversizedIdError';
  }
}

/**
 * Text that a PostgreSQL text column accepts: U+0000 and lone surrogates become U+FFFD, and what is longer than
 * `maxChars` UTF-16 units is cut without splitting a character.
 */
export function storableText(text: string, maxChars: number): string {
  const isCutInsidePair = text.length > maxChars && isHighSurrogate(text.charCodeAt(maxChars - 1));
  const kept = text.slice(0, isCutInsidePair ? maxChars - 1 : maxChars);
  return kept.toWellFormed().replaceAll('\0', '\ufffd');
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/** An id as text, exactly as upstream wrote it (for comparing); null when it is missing, empty or no id at all. */
export function rawIdOf(node: JsonNode | null): string | null {
  return textOf(node) || null;
}

/** An id as storable text; null when it is missing, empty or no id at all. Throws OversizedIdError. */
export function idOf(node: JsonNode | null): string | null {
  const id = rawIdOf(node);
  return id === null ? null : storableId(id);
}

/** An id as storable text; null also when it is oversized, for ids that may be missing. */
export function boundedIdOf(node: JsonNode | null): string | null {
  const id = rawIdOf(node);
  return id === null || id.length > MAX_ID_CHARS ? null : storableId(id);
}

/**
 * An id as storable text. One that had to be changed gets a digest of what upstream wrote behind it, so that two
 * different ids never become one. Throws OversizedIdError.
 */
export function storableId(id: string): string {
  if (id.length > MAX_ID_CHARS) throw new OversizedIdError(id.length);
  const stored = storableText(id, MAX_ID_CHARS);
  if (stored === id) return id;
  const digest = createHash('sha256').update(Buffer.from(id, 'utf16le')).digest('hex').slice(0, 16);
  return `${stored}~${digest}`;
}

/** A describing text (name, caption), storable and cut to `maxChars` UTF-16 units; null when missing or empty. */
export function shortTextOf(node: JsonNode | null, maxChars: number): string | null {
  const text = textOf(node);
  return text ? storableText(text, maxChars) : null;
}
