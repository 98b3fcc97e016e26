import { invalidValue } from '../../platform/request-input.ts';

/** More than headers or a secret can have: whoever pipes the wrong file is told so instead of waiting. */
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

/** Reads headers as JSON from standard input: `{"Authorization": "Bearer …", "X-Old": null}`. */
export async function readHeadersFromStdin(): Promise<Record<string, string | null>> {
  const headers = parseJson(await readStdin());
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) throw wrongHeaders();
  for (const value of Object.values(headers)) {
    if (typeof value !== 'string' && value !== null) throw wrongHeaders();
  }
  return headers as Record<string, string | null>;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw wrongHeaders();
  }
}

/** Never holds what was read. */
function wrongHeaders(): Error {
  return invalidValue('Standard input must be a JSON object of header names and texts (null removes one).');
}
