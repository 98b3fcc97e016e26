/** The types and sizes that upstream takes. */

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

export const MAX_UPLOAD_BYTES = MAX_BYTES.document;

export const SENDABLE_MIME_TYPES: readonly string[] = [...KIND_OF_MIME_TYPE.keys()];

/** Types for the headers of templates, and for upload sessions of upstream. */
export const HANDLE_MIME_TYPES: readonly string[] = [
  'application/pdf',
  'image/jpeg',
  'image/png',
  'video/mp4',
];

/** Without parameters, in lower case. */
export function essenceOf(mimeType: string): string {
  return (mimeType.split(';', 1)[0] ?? '').trim().toLowerCase();
}

/** The type is an essence; null: it cannot be sent. */
export function mediaKindOf(mimeType: string): MediaKind | null {
  return KIND_OF_MIME_TYPE.get(mimeType) ?? null;
}

const ISO_MEDIA = ['video/mp4', 'audio/mp4', 'video/3gpp', 'video/quicktime'];

/**
 * What the first bytes of a file of a type may speak for; null: they may be unknown. Office documents are archives or
 * compound files, and other programs' texts and tables carry their types too.
 */
const FIRST_BYTES: ReadonlyMap<string, readonly (string | null)[]> = new Map([
  ['image/jpeg', ['image/jpeg']],
  ['image/png', ['image/png']],
  ['image/webp', ['image/webp']],
  ['video/mp4', ISO_MEDIA],
  ['video/3gpp', ISO_MEDIA],
  ['audio/mp4', ISO_MEDIA],
  ['audio/ogg', ['audio/ogg']],
  ['audio/amr', ['audio/amr']],
  ['audio/mpeg', ['audio/mpeg', null]],
  // With a tag it begins as MP3 does.
  ['audio/aac', ['audio/aac', 'audio/mpeg', ...ISO_MEDIA, null]],
  ['application/pdf', ['application/pdf', null]],
  ['text/plain', [null]],
]);
const OFFICE_BYTES: readonly (string | null)[] = ['application/zip', 'application/x-cfb', null];

/** The MIME type is an essence; `found` is the type that the bytes speak for. */
export function mayBeginAs(mimeType: string, found: string | null): boolean {
  return (FIRST_BYTES.get(mimeType) ?? OFFICE_BYTES).includes(found);
}

/** So many bytes tell an animated sticker from a still one. */
export const HEAD_BYTES = 21;

const ANIMATION_FLAG = 0x02;

/** In bytes; `head` are the first HEAD_BYTES bytes. */
export function maxBytesOf(kind: MediaKind, head: Uint8Array): number {
  if (kind !== 'sticker') return MAX_BYTES[kind];
  const isExtended = Buffer.from(head.subarray(12, 16)).toString('latin1') === 'VP8X';
  const isAnimated = isExtended && ((head[20] ?? 0) & ANIMATION_FLAG) !== 0;
  return isAnimated ? MAX_STICKER_BYTES.animated : MAX_STICKER_BYTES.still;
}

const MAX_NAME_CHARS = 240;
/** Of a longer path only the end is read: the name stands there. */
const MAX_PATH_CHARS = 1_024;

/** Without folders, control and direction characters and quotes. Null when nothing is left. */
export function uploadedFileName(name: string | undefined): string | null {
  const cleaned = meantFileName(name ?? '')
    .slice(-MAX_PATH_CHARS)
    .toWellFormed()
    .replace(/^.*[\\/]/s, '')
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '')
    .replace(/["<>|*?:;]/g, '_')
    .replace(/^[.\s]+/, '')
    .trimEnd();
  return [...cleaned].slice(0, MAX_NAME_CHARS).join('').slice(0, MAX_NAME_CHARS).toWellFormed() || null;
}

const ENCODED_WORD = /=\?([\w-]+)\?([bq])\?([^?]*)\?=\s*/gi;
/** What writers of forms encode, of which a name itself has next to nothing: bytes above ASCII, spaces, quotes and line breaks. */
const ESCAPE = /%(?:[89a-f][0-9a-f]|20|22|0[ad])/i;

/**
 * The name that a writer of forms meant: .NET writes encoded words (RFC 2047), aiohttp percent-encodes all of it, browsers only
 * quotes and line breaks. What is neither stays as it is.
 */
function meantFileName(name: string): string {
  if (name.startsWith('=?')) return name.replace(ENCODED_WORD, decodedWord);
  if (!ESCAPE.test(name)) return name;
  try {
    return decodeURIComponent(name);
  } catch {
    return name.replace(/%22/g, '"').replace(/%0[ad]/gi, ' ');
  }
}

function decodedWord(word: string, charset: string, encoding: string, text: string): string {
  const bytes =
    encoding.toLowerCase() === 'b'
      ? Buffer.from(text, 'base64')
      : Buffer.from(
          text
            .replaceAll('_', ' ')
            .replace(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
          'latin1',
        );
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes);
  } catch {
    return word;
  }
}
