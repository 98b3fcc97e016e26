import { randomBytes } from 'node:crypto';
import { printable, printableJson } from '../../../src/platform/cli/terminal-text.ts';

export { printable };

type Stream = Pick<NodeJS.WriteStream, 'write' | 'isTTY'>;

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const;

type Style = keyof typeof CODES;

/** Where a command writes: results to `out`, everything else to `err`, so that results can be piped. */
export type Output = {
  /** A line of the result. */
  line(text?: string): void;
  /** A line for the user beside the result. */
  note(text: string): void;
  /** Progress in place, in a terminal only; an empty text clears it. */
  progress(text: string): void;
  style(style: Style, text: string): string;
  json(value: unknown): void;
  /** A text that is JSON already, in one line. */
  jsonLine(json: string): void;
};

/** Marks colours of ours until they are written, so that no text of others can have one. */
const OURS = `\u001b[${randomBytes(8).toString('hex')};`;

const MARKS = new RegExp(`${OURS.replace('[', '\\[')}(\\d+)m`, 'g');

/** `NO_COLOR` and `FORCE_COLOR` decide before the terminal does. */
export function makeOutput(
  out: Stream,
  err: Stream,
  env: Readonly<Record<string, string | undefined>>,
): Output {
  const hasColour =
    env.NO_COLOR !== undefined && env.NO_COLOR !== ''
      ? false
      : env.FORCE_COLOR !== undefined
        ? env.FORCE_COLOR !== '0'
        : out.isTTY === true;
  let progressLength = 0;
  const clear = (): void => {
    if (progressLength > 0) err.write(`\r${' '.repeat(progressLength)}\r`);
    progressLength = 0;
  };
  return {
    line(text = '') {
      clear();
      out.write(`${shown(text)}\n`);
    },
    note(text) {
      clear();
      err.write(`${shown(text)}\n`);
    },
    progress(text) {
      if (err.isTTY !== true) return;
      clear();
      err.write(shown(text));
      progressLength = text.length;
    },
    style: (style, text) => (hasColour ? `${OURS}${CODES[style]}m${text}${OURS}0m` : text),
    json(value) {
      clear();
      out.write(`${printableJson(JSON.stringify(value, null, 2))}\n`);
    },
    jsonLine(json) {
      clear();
      out.write(`${printableJson(json.replace(/[\r\n]/g, ' '))}\n`);
    },
  };
}

const widthOf = (text: string) => text.replace(MARKS, '').length;

/** Columns with a heading, as wide as their widest cell. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [headings, ...rows];
  const widths = headings.map((_, column) => Math.max(...all.map((row) => widthOf(row[column] ?? ''))));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(cell))))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Names with their values, below each other; undefined ones are left out. */
export function fields(pairs: readonly (readonly [string, string | undefined])[]): string {
  const shown = pairs.filter((pair): pair is readonly [string, string] => pair[1] !== undefined);
  const width = Math.max(...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n');
}

/** As `printable`, with the colours that `style` has made. */
function shown(text: string): string {
  const parts = text.split(MARKS);
  return parts.map((part, index) => (index % 2 === 0 ? printable(part) : `\u001b[${part}m`)).join('');
}

/** "1 delivery", "2 deliveries". */
export function counted(count: number, noun: 'delivery' | 'event'): string {
  const plural = noun === 'delivery' ? 'deliveries' : 'events';
  return `${count.toLocaleString('en')} ${count === 1 ? noun : plural}`;
}

/** A bar of 20 characters. */
export function bar(done: number, total: number): string {
  const part = total === 0 ? 1 : Math.min(1, done / total);
  const full = Math.round(part * 20);
  return `[${'#'.repeat(full)}${'.'.repeat(20 - full)}] ${done}/${total}`;
}
