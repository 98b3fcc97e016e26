import { invalidValue } from '../../../platform/request-input.ts';

/** `line`: the first line of the row, counted from 1; `text`: the row as it was written. */
export type CsvRow = { line: number; cells: string[]; text: string };

/** What spreadsheets of different countries put between cells. */
const SEPARATORS = [',', ';', '\t'];

/**
 * Rows of comma-separated values (RFC 4180), or of values with the semicolons or tabs that spreadsheets write; the first row says which. Empty rows,
 * and empty cells at the end of a row, are left out. Throws RequestError `invalid_value`.
 */
export function readCsv(text: string): CsvRow[] {
  const separator = separatorOf(text);
  const rows: CsvRow[] = [];
  let line = 1;
  for (let at = 0; at < text.length; ) {
    const { cells, end } = rowAt(text, at, { separator, line });
    const written = text.slice(at, end);
    while (cells.at(-1)?.trim() === '') cells.pop();
    if (cells.length > 0) rows.push({ line, cells, text: written });
    const next = lineEnd(text, end);
    line += written.split(LINE_BREAK).length;
    at = next;
  }
  return rows;
}

const LINE_BREAK = /\r\n|\r|\n/;

function lineEnd(text: string, end: number): number {
  return text.startsWith('\r\n', end) ? end + 2 : end + 1;
}

/** The one that the first line has most of, outside of quotation marks. */
function separatorOf(text: string): string {
  const [first = ''] = text.replace(/^\s+/, '').split(LINE_BREAK, 1);
  const bare = first.replaceAll(/"[^"]*"/g, '');
  const countOf = (separator: string) => bare.split(separator).length;
  return SEPARATORS.reduce((best, one) => (countOf(one) > countOf(best) ? one : best));
}

function rowAt(
  text: string,
  from: number,
  { separator, line }: { separator: string; line: number },
): { cells: string[]; end: number } {
  const cells: string[] = [];
  let at = from;
  for (;;) {
    const cell = text[at] === '"' ? quotedCell(text, at, line) : { value: '', end: at };
    let end = cell.end;
    while (end < text.length && text[end] !== separator && text[end] !== '\n' && text[end] !== '\r') end += 1;
    cells.push(cell.value + text.slice(cell.end, end));
    if (text[end] !== separator) return { cells, end };
    at = end + 1;
  }
}

/** `end`: behind the closing quotation mark. */
function quotedCell(text: string, from: number, line: number): { value: string; end: number } {
  const pieces: string[] = [];
  for (let at = from + 1; ; ) {
    const mark = text.indexOf('"', at);
    if (mark === -1) {
      throw invalidValue(`Line ${line}: a quotation mark is opened and not closed.`, 'recipients');
    }
    pieces.push(text.slice(at, mark));
    if (text[mark + 1] !== '"') return { value: pieces.join('"'), end: mark + 1 };
    at = mark + 2;
  }
}
