import { setTimeout as sleep } from 'node:timers/promises';
import pc from 'picocolors';
import { printable } from './terminal-text.ts';

/** Lines of a picture; `alarming` ones are red, `heading` ones stand out. */
export type ScreenLine = { text: string; look?: 'alarming' | 'heading' };

/** What of a terminal is used; `process.stdin` and `process.stdout` are one. */
export type Terminal = {
  input: Pick<NodeJS.ReadStream, 'isTTY' | 'setRawMode' | 'on' | 'off' | 'resume' | 'pause'>;
  output: Pick<NodeJS.WriteStream, 'columns' | 'rows' | 'write' | 'on' | 'off'>;
};

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const CTRL_C = '\x03';

/**
 * Shows a picture on its own screen, a new one every `refreshMs`, until q, Ctrl-C or a signal; afterwards the
 * terminal is as it was, after an error too.
 */
export async function showLive(
  picture: () => Promise<readonly ScreenLine[]>,
  { input, output }: Terminal,
  refreshMs: number,
): Promise<void> {
  const stop = new AbortController();
  const end = () => stop.abort();
  const onKey = (keys: Buffer) => {
    if (/[qQ]/.test(String(keys)) || String(keys).includes(CTRL_C)) end();
  };
  let lines: readonly ScreenLine[] = [{ text: '…' }];
  const draw = () => output.write(`\x1b[H${drawn(lines, output)}\x1b[J`);
  for (const signal of SIGNALS) process.on(signal, end);
  output.on('resize', draw);
  if (input.isTTY) input.setRawMode(true);
  input.on('data', onKey);
  input.resume();
  output.write('\x1b[?1049h\x1b[?25l');
  try {
    while (!stop.signal.aborted) {
      lines = await picture();
      draw();
      await sleep(refreshMs, undefined, { signal: stop.signal }).catch(() => {});
    }
  } finally {
    output.write('\x1b[?25h\x1b[?1049l');
    input.off('data', onKey);
    input.pause();
    if (input.isTTY) input.setRawMode(false);
    output.off('resize', draw);
    for (const signal of SIGNALS) process.off(signal, end);
  }
}

/** What fits, every line cleared to its end; the last line of a terminal would scroll it. */
function drawn(lines: readonly ScreenLine[], { columns = 80, rows = 24 }: Terminal['output']): string {
  return lines
    .slice(0, rows - 1)
    .map(({ text, look }) => `${painted(printable(text).slice(0, columns), look)}\x1b[K`)
    .join('\r\n');
}

function painted(text: string, look: ScreenLine['look']): string {
  if (look === 'alarming') return pc.red(text);
  return look === 'heading' ? pc.bold(text) : text;
}
