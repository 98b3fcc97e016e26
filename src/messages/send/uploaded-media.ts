/** What a tenant may upload for sends: the types and sizes that upstream takes. */

export type MediaKind = 'image' | 'video' | 'audio' | 'document' | 'sticker';

const KIB = 1024;
const MIB = 1024 * KIB;

const MIME_TYPES: Readonly<Record<MediaKind, readonly string[]>> = {
  image: ['image/jpeg', 'image/png'],
  video: ['video/mp4', 'video/3gpp'],
  audio: ['audio/aac', 'audio/amr', 'audio/mpeg', 'audio/mp4', 'audio/ogg'],
  document: [
    'text/plain',
    'application/pdf',
    'application/msword',
    'application/vnd.ms-excel',
    'application/vnd.ms-powerpoint',
    'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
    'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
    'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  ],
  sticker: ['image/webp'],
};

const KIND_OF_MIME_TYPE: ReadonlyMap<string, MediaKind> = new Map(
  Object.entries(MIME_TYPES).flatMap(([kind, types]) => types.map((type) => [type, kind as MediaKind])),
);

const MAX_BYTES: Readonly<Record<Exclude<MediaKind, 'sticker'>, number>> = {
  image: 5 * MIB,
  video: 16 * MIB,
  audio: 16 * MIB,
  document: 100 * MIB,
};
const MAX_STICKER_BYTES = { still: 100 * KIB, animated: 500 * KIB };

/** The largest file of all. */
export const MAX_UPLOAD_BYTES = MAX_BYTES.document;

/** All MIME types that can be sent, for texts. */
export const SENDABLE_MIME_TYPES: readonly string[] = [...KIND_OF_MIME_TYPE.keys()];

/** A MIME type without its parameters, in lower case. */
export function essenceOf(mimeType: string): string {
  return (mimeType.split(';', 1)[0] ?? '').trim().toLowerCase();
}

/** What a file of this MIME type (an essence) can be sent as; null: as nothing. */
export function mediaKindOf(mimeType: string): MediaKind | null {
  return KIND_OF_MIME_TYPE.get(mimeType) ?? null;
}

/** How many of its first bytes tell an animated sticker from a still one. */
export const HEAD_BYTES = 21;

const ANIMATION_FLAG = 0x02;

/** The largest file of a kind, in bytes; `head` are its first HEAD_BYTES bytes. */
export function maxBytesOf(kind: MediaKind, head: Uint8Array): number {
  if (kind !== 'sticker') return MAX_BYTES[kind];
  const isExtended = Buffer.from(head.subarray(12, 16)).toString('latin1') === 'VP8X';
  const isAnimated = isExtended && ((head[20] ?? 0) & ANIMATION_FLAG) !== 0;
  return isAnimated ? MAX_STICKER_BYTES.animated : MAX_STICKER_BYTES.still;
}

const MAX_NAME_CHARS = 240;

/**
 * A file's name as the client said it, made harmless: without folders, control and direction characters and quotes.
 * Null when nothing is left.
 */
export function uploadedFileName(name: string | undefined): string | null {
  const cleaned = (name ?? '')
    .toWellFormed()
    .replace(/^.*[\\/]/s, '')
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '')
    .replace(/["<>|*?:;]/g, '_')
    .replace(/^[.\s]+|\s+$/g, '');
  return [...cleaned].slice(0, MAX_NAME_CHARS).join('').slice(0, MAX_NAME_CHARS).toWellFormed() || null;
}
