const SPECIAL = /[\\`*_{}[\]<>#+!|~\p{Cc}\p{Zl}\p{Zp}]+/gu;

/**
 * Text from outside as one line without meaning in Markdown, which the Temporal UI renders; at most `maxBytes` long as
 * UTF-8.
 */
export function markdownLine(text: string, maxBytes: number): string {
  const line = text.replace(SPECIAL, ' ').replace(/\s+/g, ' ').trim().toWellFormed();
  if (Buffer.byteLength(line) <= maxBytes) return line;
  let cut = '';
  let size = Buffer.byteLength('…');
  for (const character of line) {
    size += Buffer.byteLength(character);
    if (size > maxBytes) break;
    cut += character;
  }
  return `${cut}…`;
}
