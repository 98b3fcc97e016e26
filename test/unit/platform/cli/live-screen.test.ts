import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { type ScreenLine, showLive } from '../../../../src/platform/cli/live-screen.ts';

function terminal() {
  const input = new PassThrough();
  const output = new PassThrough();
  const modes: boolean[] = [];
  const written: string[] = [];
  output.on('data', (bytes) => written.push(String(bytes)));
  const setRawMode = (mode: boolean) => modes.push(mode);
  return {
    keys: input,
    modes,
    written,
    parts: {
      input: Object.assign(input, { isTTY: true, setRawMode }),
      output: Object.assign(output, { columns: 80, rows: 24 }),
    } as unknown as Parameters<typeof showLive>[1],
  };
}

const RESTORED = '\x1b[?25h\x1b[?1049l';
const lines: ScreenLine[] = Array.from({ length: 40 }, (_, n) => ({ text: `${n} ${'x'.repeat(200)}` }));

test.each([
  ['q', 'q'],
  ['Ctrl-C', '\x03'],
])('%s ends a live picture at once and gives the terminal back', async (_name, key) => {
  const { keys, modes, written, parts } = terminal();
  const shown = showLive(async () => lines, parts, 3_600_000);
  await expect.poll(() => written.length).toBeGreaterThan(1);
  keys.write('x');
  keys.write(key);
  await shown;
  expect(modes).toEqual([true, false]);
  expect(written.at(-1)).toBe(RESTORED);
  expect([keys.listenerCount('data'), keys.isPaused()]).toEqual([0, true]);
});

test('a signal that ends the process gives the terminal back too', async () => {
  const { written, parts } = terminal();
  const others = process.listeners('SIGTERM');
  const shown = showLive(async () => lines, parts, 3_600_000);
  await expect.poll(() => written.length).toBeGreaterThan(1);
  const own = process.listeners('SIGTERM').filter((listener) => !others.includes(listener));
  expect(own).toHaveLength(1);
  for (const end of own) end('SIGTERM');
  await shown;
  expect(written.at(-1)).toBe(RESTORED);
  expect(process.listeners('SIGTERM')).not.toContain(own[0]);
});

test('so does an error of what is shown', async () => {
  const { modes, written, parts } = terminal();
  await expect(showLive(() => Promise.reject(new Error('gone')), parts, 1)).rejects.toThrow('gone');
  expect([modes, written.at(-1)]).toEqual([[true, false], RESTORED]);
});

test('a picture never scrolls: what 80 columns and 24 rows do not hold is left out', async () => {
  const { keys, written, parts } = terminal();
  const shown = showLive(async () => lines, parts, 3_600_000);
  await expect.poll(() => written.length).toBeGreaterThan(1);
  keys.write('q');
  await shown;
  const rows = stripVTControlCharacters(written[1] ?? '').split('\r\n');
  expect(rows.map((row) => row.length)).toEqual(Array(23).fill(80));
});
