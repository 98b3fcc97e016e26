import type { LoggedAttempt } from '../../../deliveries/log/delivery-detail.ts';

/** Longer bodies are named as a file: the command is for people to read, too. */
const MAX_INLINE_BYTES = 4_096;

/**
 * An attempt as a command for a shell. The log holds no signature and no values of the tenant's own headers, so that
 * nobody who reads it can pass for this service: these have to be put in by whoever has them.
 */
export function curlCommand(
  { url, requestHeaders }: Pick<LoggedAttempt, 'url' | 'requestHeaders'>,
  { body, fileName }: { body: Buffer | null; fileName: string },
): string {
  const headers = Object.entries(requestHeaders)
    .filter(([name]) => !/signature/i.test(name))
    .map(([name, value]) => `  -H ${quoted(`${name}: ${value}`)}`);
  const isInline = body !== null && body.length <= MAX_INLINE_BYTES;
  const data = isInline ? quoted(body.toString('utf8')) : quoted(`@${fileName}`);
  return [`curl -i -X POST ${quoted(url)}`, ...headers, `  --data-binary ${data}`].join(' \\\n');
}

/** One word for a POSIX shell, whatever is in it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
