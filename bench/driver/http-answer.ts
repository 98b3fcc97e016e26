/** Status and end of the first answer in `text` (latin1); null while it is incomplete. Throws on what it cannot read. */
export function readHttpAnswer(text: string): { status: number; endIndex: number } | null {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return null;
  const head = text.slice(0, headEnd);
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]);
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1]);
  if (Number.isNaN(status) || Number.isNaN(length)) throw new Error('an answer without status or length');
  const endIndex = headEnd + 4 + length;
  return text.length < endIndex ? null : { status, endIndex };
}
