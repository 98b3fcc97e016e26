const MAX_NAME_CHARS = 150;

/** Types that a browser may show by itself; everything else is offered as a download. */
const INLINE_TYPE =
  /^(?:image\/(?:jpeg|png|webp|gif)|audio\/[a-z0-9.+-]+|video\/[a-z0-9.+-]+|application\/pdf)(?:\s*;|$)/;

/**
 * The Content-Disposition of a stored file. The name, which the customer chose, is only ever a hint: path separators,
 * control and direction characters and quotes are taken out; `filename*` (RFC 8187) holds what is not ASCII.
 */
export function contentDisposition(contentType: string, fileName: string): string {
  const kind = INLINE_TYPE.test(contentType) ? 'inline' : 'attachment';
  const name = safeFileName(fileName);
  const ascii = name.replace(/[^\x20-\x7e]/gu, '_').replace(/[%]/g, '_');
  const plain = `${kind}; filename="${ascii}"`;
  return ascii === name ? plain : `${plain}; filename*=UTF-8''${percentEncode(name)}`;
}

function safeFileName(fileName: string): string {
  const cleaned = fileName
    .toWellFormed()
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '')
    .replace(/["\\/:*?<>|;]/g, '_')
    .replace(/\s+/g, ' ')
    .replace(/^[.\s]+|[.\s]+$/g, '');
  const short = cutKeepingExtension(cleaned);
  return short === '' ? 'file' : short;
}

function cutKeepingExtension(name: string): string {
  const characters = [...name];
  if (characters.length <= MAX_NAME_CHARS) return name;
  const extension = /\.[A-Za-z0-9]{1,8}$/.exec(name)?.[0] ?? '';
  return characters.slice(0, MAX_NAME_CHARS - extension.length).join('') + extension;
}

/** RFC 8187 leaves fewer characters bare than encodeURIComponent does. */
function percentEncode(name: string): string {
  return encodeURIComponent(name).replace(
    /['()*!]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
