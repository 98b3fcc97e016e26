import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openPartLog } from '../../../../dev/embedded/process-part.ts';
import { temporaryDirectory } from './temporary-directory.ts';

function openLog() {
  const file = join(temporaryDirectory(), 'logs', 'part.log');
  const seen: string[] = [];
  return { file, seen, log: openPartLog(file, (line) => void seen.push(line)) };
}

describe('log of a part', () => {
  test('lines are put together from pieces, and the last one needs no line end', () => {
    const { file, log, seen } = openLog();
    for (const piece of ['a', 'b\nc\r', '\nd', 'e']) log.write(piece);
    expect(seen).toEqual(['ab', 'c']);
    log.close();
    expect(seen).toEqual(['ab', 'c', 'de']);
    expect(readFileSync(file, 'utf8')).toBe('ab\nc\nde\n');
  });

  test('the file and the crash report have no colour codes, the terminal gets them', () => {
    const { file, log, seen } = openLog();
    log.write('\u001b[31mred\u001b[39m\n');
    expect(seen).toEqual(['\u001b[31mred\u001b[39m']);
    expect(log.lastLines()).toEqual(['red']);
    expect(readFileSync(file, 'utf8')).toBe('red\n');
  });

  test('output without line ends does not fill the memory', () => {
    const { log } = openLog();
    for (let count = 0; count < 100; count++) log.write('x'.repeat(10_000));
    log.close();
    expect(log.lastLines().length).toBeLessThanOrEqual(20);
    expect(Math.max(...log.lastLines().map((line) => line.length))).toBeLessThanOrEqual(8_192);
  });

  test('a file of more than 10 MiB makes room, and the one before is kept', () => {
    const file = join(temporaryDirectory(), 'part.log');
    writeFileSync(file, 'x'.repeat(11 * 1024 * 1024));
    const log = openPartLog(file, () => undefined);
    log.write('new\n');
    expect(readFileSync(file, 'utf8')).toBe('new\n');
    expect(statSync(`${file}.1`).size).toBe(11 * 1024 * 1024);
  });

  test('a file that cannot be written does not stop the part', () => {
    const { file, log } = openLog();
    log.write('first\n');
    const blocked = openPartLog(join(file, '..', '..', 'logs'), () => undefined);
    expect(() => blocked.write('line\n')).not.toThrow();
    expect(blocked.lastLines()).toEqual(['line']);
    expect(existsSync(file)).toBe(true);
  });
});
