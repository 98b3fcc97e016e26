import { sniffMediaType } from './sniff-media-type.ts';

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
 * The content type to serve a stored file with: what its first bytes prove, refined by what the message declared when
 * both agree. Everything else (SVG, HTML, XML, text, unknown) is `application/octet-stream`.
 */
export function servedType(declared: string | null, head: Uint8Array): string {
  const sniffed = sniffMediaType(head);
  if (sniffed === null) return UNKNOWN;
  const declaredType = declared !== null && MIME_TYPE.test(declared) ? declared.toLowerCase() : UNKNOWN;
  const [essence = UNKNOWN] = declaredType.split(/\s*;/, 1);
  const packaged = PACKAGED[sniffed];
  if (packaged !== undefined) return packaged.test(essence) ? essence : UNKNOWN;
  const agrees = essence === sniffed || (COMPATIBLE[sniffed] ?? []).includes(essence);
  return agrees ? declaredType : sniffed;
}
