import { readFile } from 'node:fs/promises';
import { InvalidArgumentError } from 'commander';
import { invalidValue } from '../request-input.ts';

const MAX_INPUT_CHARS = 65_536;

/** Reads standard input: secrets do not belong on a command line, where other users of the machine see them. */
export async function readStdin(): Promise<string> {
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk;
    if (text.length > MAX_INPUT_CHARS) throw invalidValue('There is too much on standard input.');
  }
  return text;
}

export async function readNamedFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    throw invalidValue(`The file ${path} cannot be read.`);
  }
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
