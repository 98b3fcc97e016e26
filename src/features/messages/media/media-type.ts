import { essenceOf } from '../send/uploaded-media.ts';

const UNKNOWN = 'application/octet-stream';

/** A type with optional parameters, in the characters that a header may hold. */
const MIME_TYPE =
  /^[a-z0-9!#$&^_.+-]{1,64}\/[a-z0-9!#$&^_.+-]{1,100}(?:\s*;\s*[a-z0-9!#$&^_.+-]{1,64}=(?:[a-z0-9!#$&^_.+-]{1,64}|"[a-z0-9 ,!#$&^_.+-]{1,64}"))*$/i;

/** Containers that carry sound or pictures alike: the declared type may say more than the first bytes can. */
const COMPATIBLE: Readonly<Record<string, readonly string[]>> = {
  'audio/ogg': ['audio/opus', 'application/ogg', 'video/ogg'],
  'video/mp4': ['audio/mp4', 'audio/m4a', 'audio/x-m4a', 'video/3gpp', 'video/quicktime', 'audio/aac'],
  'audio/mp4': ['audio/m4a', 'audio/x-m4a', 'audio/aac', 'video/mp4'],
  'video/3gpp': ['audio/3gpp', 'video/mp4'],
  'video/webm': ['audio/webm', 'video/x-matroska'],
  'audio/mpeg': ['audio/mp3'],
  'audio/aac': ['audio/x-aac', 'audio/aacp'],
  'audio/amr': ['audio/amr-wb', 'audio/3gpp'],
  'audio/wav': ['audio/x-wav', 'audio/wave', 'audio/vnd.wave'],
};

/** Documents that are archives or compound files inside. They are served as attachments only. */
const PACKAGED: Readonly<Record<string, RegExp>> = {
  'application/zip':
    /^application\/(?:zip|x-zip-compressed|vnd\.openxmlformats-officedocument\.[a-z.]+|vnd\.oasis\.opendocument\.[a-z]+|epub\+zip)$/,
  'application/x-cfb': /^application\/(?:msword|vnd\.ms-(?:excel|powerpoint|outlook))$/,
};

/**
 * What the first bytes prove, refined by what the message declared when both agree. Everything else (SVG, HTML, XML, text, unknown) is
 * `application/octet-stream`.
 */
export function servedType(declared: string | null, head: Uint8Array): string {
  const sniffed = sniffMediaType(head);
  if (sniffed === null) return UNKNOWN;
  const declaredType = declared !== null && MIME_TYPE.test(declared) ? declared.toLowerCase() : UNKNOWN;
  const essence = essenceOf(declaredType);
  const packaged = PACKAGED[sniffed];
  if (packaged !== undefined) return packaged.test(essence) ? essence : UNKNOWN;
  const agrees = essence === sniffed || (COMPATIBLE[sniffed] ?? []).includes(essence);
  return agrees ? declaredType : sniffed;
}

type Signature = { type: string; at: number; bytes: string };

const SIGNATURES: readonly Signature[] = [
  { type: 'image/jpeg', at: 0, bytes: '\xff\xd8\xff' },
  { type: 'image/png', at: 0, bytes: '\x89PNG\r\n\x1a\n' },
  { type: 'image/gif', at: 0, bytes: 'GIF87a' },
  { type: 'image/gif', at: 0, bytes: 'GIF89a' },
  { type: 'application/pdf', at: 0, bytes: '%PDF-' },
  { type: 'audio/ogg', at: 0, bytes: 'OggS' },
  { type: 'audio/amr', at: 0, bytes: '#!AMR' },
  { type: 'audio/mpeg', at: 0, bytes: 'ID3' },
  { type: 'video/webm', at: 0, bytes: '\x1a\x45\xdf\xa3' },
  { type: 'application/zip', at: 0, bytes: 'PK\x03\x04' },
  // The compound file of older office documents.
  { type: 'application/x-cfb', at: 0, bytes: '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1' },
];

const RIFF_TYPES: Readonly<Record<string, string>> = {
  WEBP: 'image/webp',
  WAVE: 'audio/wav',
  'AVI ': 'video/avi',
};

export const SNIFF_BYTES = 64;

export function sniffMediaType(head: Uint8Array): string | null {
  const text = Buffer.from(head.subarray(0, SNIFF_BYTES)).toString('latin1');
  const found = SIGNATURES.find(({ at, bytes }) => text.startsWith(bytes, at));
  if (found !== undefined) return found.type;
  if (text.startsWith('RIFF')) return RIFF_TYPES[text.slice(8, 12)] ?? null;
  if (text.startsWith('ftyp', 4)) return mp4Type(text.slice(8, 12));
  return mpegAudioType(head);
}

function mp4Type(brand: string): string {
  if (brand.startsWith('M4A') || brand.startsWith('M4B')) return 'audio/mp4';
  if (brand.startsWith('3gp') || brand.startsWith('3g2')) return 'video/3gpp';
  if (brand === 'qt  ') return 'video/quicktime';
  // HEIC and AVIF are images that few browsers show: they are not offered as video.
  if (brand.startsWith('hei') || brand === 'mif1' || brand.startsWith('avi')) return 'image/heic';
  return 'video/mp4';
}

/** Frames of AAC (ADTS) and MP3 start with eleven or more set bits, then version and layer. */
function mpegAudioType([first = 0, second = 0, third = 0]: Uint8Array): string | null {
  if (first !== 0xff) return null;
  if ((second & 0xf6) === 0xf0) return 'audio/aac';
  const isMp3 = (second & 0xe0) === 0xe0 && (second & 0x18) !== 0x08 && (second & 0x06) === 0x02;
  return isMp3 && (third & 0xf0) !== 0xf0 ? 'audio/mpeg' : null;
}
