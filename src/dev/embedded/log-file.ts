import { appendFileSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

const MAX_FILE_BYTES = 10 * 1024 * 1024;
const MAX_LINE_CHARACTERS = 8_192;
const KEPT_LINES = 20;

export interface PartLog {
  /** Takes output as it comes, in pieces of any size. */
  write(chunk: string): void;
  /** The last lines, oldest first. */
  lastLines(): string[];
  /** Takes the rest that came without a line end. */
  close(): void;
}

/**
 * Splits a part's output into lines, appends them to a file (rotated at 10 MiB, one old file kept)
 * and keeps the last ones in memory for the report of a crash.
 */
export function openPartLog(file: string, onLine: (line: string) => void): PartLog {
  mkdirSync(dirname(file), { recursive: true });
  let sizeBytes = fileSize(file);
  let partial = '';
  let kept: string[] = [];

  function take(lines: readonly string[]): void {
    if (lines.length === 0) return;
    kept = [...kept, ...lines].slice(-KEPT_LINES);
    for (const line of lines) onLine(line);
    const text = stripVTControlCharacters(`${lines.join('\n')}\n`);
    if (sizeBytes > MAX_FILE_BYTES) sizeBytes = rotate(file);
    sizeBytes += append(file, text);
  }

  return {
    write(chunk) {
      const pieces = (partial + chunk).split('\n');
      partial = pieces.pop() ?? '';
      if (partial.length > MAX_LINE_CHARACTERS) {
        pieces.push(partial);
        partial = '';
      }
      take(pieces.map((line) => line.slice(0, MAX_LINE_CHARACTERS).replace(/\r$/, '')));
    },
    lastLines: () => kept.map((line) => stripVTControlCharacters(line)),
    close() {
      if (partial !== '') take([partial]);
      partial = '';
    },
  };
}

/** A full disk must not take the parts down with their logs. */
function append(file: string, text: string): number {
  try {
    appendFileSync(file, text, { mode: 0o600 });
  } catch {
    return 0;
  }
  return Buffer.byteLength(text);
}

function rotate(file: string): number {
  try {
    rmSync(`${file}.1`, { force: true });
    renameSync(file, `${file}.1`);
  } catch {
    return fileSize(file);
  }
  return 0;
}

function fileSize(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
