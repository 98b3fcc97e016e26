import { isUtf8 } from 'node:buffer';

const BYTE_ORDER_MARK = '\ufeff';

/** The text of bytes, without a byte order mark; null when they are no UTF-8: what replaces them would change the text. */
export function utf8Text(bytes: Uint8Array): string | null {
  if (!isUtf8(bytes)) return null;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}

/** Types whose bytes are text that is read as UTF-8. */
const TEXT_TYPE = /^\s*(?:application\/(?:json|x-www-form-urlencoded)|text\/)/i;
const CHARSET = /;\s*charset\s*=\s*(?:"([^"]*)"|([^;\s]*))/i;
const READ_CHARSETS = new Set(['', 'utf-8', 'utf8', 'us-ascii', 'ascii']);

type BodyHeaders = Readonly<{ 'content-type'?: string | undefined; 'content-encoding'?: string | undefined }>;

/** Why a body cannot be read as it was meant, by its headers; null: it can. */
export function unreadableBody({
  'content-type': type = '',
  'content-encoding': encoding,
}: BodyHeaders): string | null {
  const coding = (encoding ?? '').trim().toLowerCase();
  if (coding !== '' && coding !== 'identity')
    return 'The body must not be compressed: send it without Content-Encoding.';
  const [, quoted, plain = ''] = CHARSET.exec(type) ?? [];
  const charset = (quoted ?? plain).trim().toLowerCase();
  if (!TEXT_TYPE.test(type) || READ_CHARSETS.has(charset)) return null;
  return 'The body must be UTF-8: send it so, with "charset=utf-8" or without a charset.';
}
