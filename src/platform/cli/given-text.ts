import { readFile } from 'node:fs/promises';
import { InvalidArgumentError } from 'commander';
import { utf8Text } from '../http/utf8-text.ts';
import { invalidValue } from '../request-input.ts';

const MAX_INPUT_BYTES = 65_536;

/** Reads standard input: secrets do not belong on a command line, where other users of the machine see them. */
export async function readStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of process.stdin) {
    chunks.push(Buffer.from(chunk));
    sizeBytes += chunk.length;
    if (sizeBytes > MAX_INPUT_BYTES) throw invalidValue('There is too much on standard input.');
  }
  return utf8TextOf('Standard input', Buffer.concat(chunks));
}

export async function readNamedFile(path: string): Promise<string> {
  const bytes = await readFile(path).catch(() => null);
  if (bytes === null) throw invalidValue(`The file ${path} cannot be read.`);
  return utf8TextOf(`The file ${path}`, bytes);
}

function utf8TextOf(what: string, bytes: Buffer): string {
  const text = utf8Text(bytes);
  if (text === null) throw invalidValue(`${what} is not UTF-8.`);
  return text;
}

export function parseList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** Reads a whole number. Throws commander's InvalidArgumentError. */
export function parseNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Write a whole number, or "default".');
}
