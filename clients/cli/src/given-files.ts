import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { wrongUsage } from './failure.ts';

/** Bytes of an argument: its text, those of a file, or those of standard input. */
export function readBytes(given: string): Buffer {
  if (given === '-') return readFileSync(0);
  if (!given.startsWith('@')) return Buffer.from(given);
  const path = given.slice(1);
  try {
    return readFileSync(path);
  } catch (error) {
    throw wrongUsage(`${path} cannot be read: ${(error as Error).message}`);
  }
}

/** As `readBytes`, for what must be text: another encoding than UTF-8 would reach customers with other characters. */
export function readText(given: string, option: string): string {
  const bytes = readBytes(given);
  if (isUtf8(bytes)) return bytes.toString('utf8').replace(/^\ufeff/, '');
  throw wrongUsage(`--${option} is no UTF-8, such as text in ISO-8859-1 or UTF-16: save it as UTF-8.`);
}

/**
 * The secret of an endpoint: of an option, of a file that keeps it out of the history of the shell, or of the
 * environment.
 */
export function secretOf(
  { secret, 'secret-file': file }: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (typeof secret === 'string') return secret;
  if (typeof file === 'string') return readSecretFile(file, 'secret-file');
  return env.HELIOGRAPH_WEBHOOK_SECRET?.trim() || undefined;
}

/** The text of a file that an option names, without the line break at its end; a dash is standard input. */
export function readSecretFile(path: string, option: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8').trim();
  } catch (error) {
    throw wrongUsage(
      `--${option} ${path} cannot be read: ${(error as { code?: string }).code ?? 'unknown'}.`,
    );
  }
}
