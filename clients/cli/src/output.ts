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
};

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
      out.write(`${text}\n`);
    },
    note(text) {
      clear();
      err.write(`${text}\n`);
    },
    progress(text) {
      if (err.isTTY !== true) return;
      clear();
      err.write(text);
      progressLength = text.length;
    },
    style: (style, text) => (hasColour ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text),
    json(value) {
      clear();
      out.write(`${JSON.stringify(value, null, 2)}\n`);
    },
  };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the colours of a terminal begin with one.
const COLOURS = /\u001b\[\d+m/g;

const widthOf = (text: string) => text.replace(COLOURS, '').length;

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

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Text of others without what a terminal would obey. */
export function printable(text: string): string {
  return text.replace(CONTROLS, '\ufffd');
}

/** A bar of 20 characters. */
export function bar(done: number, total: number): string {
  const part = total === 0 ? 1 : Math.min(1, done / total);
  const full = Math.round(part * 20);
  return `[${'#'.repeat(full)}${'.'.repeat(20 - full)}] ${done}/${total}`;
}
