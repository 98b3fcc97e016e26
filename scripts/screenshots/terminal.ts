import { spawn } from 'node:child_process';

const COLUMNS = 112;
const ROWS = 26;

/** As the browser has them, by the numbers of the terminal. */
const COLOURS: Readonly<Record<string, string>> = {
  '1': 'font-weight:700',
  '2': 'opacity:.6',
  '31': 'color:#ff7b72',
  '32': 'color:#7ee787',
  '33': 'color:#f2cc60',
  '34': 'color:#79c0ff',
  '36': 'color:#76e3ea',
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: sequences of a terminal begin with one.
const TOKEN = /(\u001b\[([\d;?]*)([A-Za-z]))|[\s\S]/gu;

type Cell = { char: string; style: string };

/** A terminal as far as the command line tool uses one: lines, colours, the cursor within its line, deleting to the end. */
export class Terminal {
  readonly #lines: Cell[][] = [[]];
  #column = 0;
  #style = '';

  write(text: string): void {
    for (const [token, sequence, argument, command] of text.matchAll(TOKEN)) {
      if (sequence === undefined) this.#put(token);
      else this.#obey(argument ?? '', command ?? '');
    }
  }

  /** The last lines as HTML. */
  html(): string {
    const wrapped = this.#lines.flatMap((line) => rowsOf(line));
    return wrapped.slice(-ROWS).map(htmlOf).join('\n');
  }

  text(): string {
    return this.#lines.map((line) => line.map(({ char }) => char).join('')).join('\n');
  }

  #put(char: string): void {
    if (char === '\n') {
      this.#lines.push([]);
      this.#column = 0;
    } else if (char === '\r') this.#column = 0;
    else if (char >= ' ') {
      const line = this.#lines.at(-1) ?? [];
      while (line.length < this.#column) line.push({ char: ' ', style: '' });
      line[this.#column] = { char, style: this.#style };
      this.#column += 1;
    }
  }

  #obey(argument: string, command: string): void {
    const line = this.#lines.at(-1) ?? [];
    if (command === 'm') this.#style = COLOURS[argument] ?? '';
    if (command === 'G') this.#column = Number(argument || 1) - 1;
    if (command === 'J' || command === 'K') line.length = Math.min(line.length, this.#column);
  }
}

function rowsOf(line: Cell[]): Cell[][] {
  const rows: Cell[][] = [];
  for (let at = 0; at === 0 || at < line.length; at += COLUMNS) rows.push(line.slice(at, at + COLUMNS));
  return rows;
}

const ESCAPED: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

function htmlOf(line: Cell[]): string {
  return line
    .map(({ char, style }) => {
      const shown = ESCAPED[char] ?? char;
      return style === '' ? shown : `<span style="${style}">${shown}</span>`;
    })
    .join('');
}

/** A command on a terminal of its own (`script` of util-linux), whose output goes to `terminal`. */
export function runOnTerminal(terminal: Terminal, command: string, env: NodeJS.ProcessEnv) {
  const shell = `stty cols ${COLUMNS} rows ${ROWS} -echo; ${command}`;
  const child = spawn('script', ['-qec', shell, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdout.setEncoding('utf8').on('data', (text: string) => terminal.write(text));
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  return { type: (text: string) => void child.stdin.write(text), ended, kill: () => void child.kill() };
}
