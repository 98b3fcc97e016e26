import { isUtf8 } from 'node:buffer';
import { parse } from 'node:querystring';
import { utf8Text } from './utf8-text.ts';

/** The fields of a form; a name that comes more than once has a list. */
export type FormFields = Record<string, string | string[] | undefined>;

/** Why a form is not read. */
export type UnreadForm = 'too many fields' | 'not UTF-8';

const [AND, PERCENT] = [0x26, 0x25];

/**
 * Reads a form (`application/x-www-form-urlencoded`) in time in proportion to its length, as `URLSearchParams` of Node 24
 * does not.
 */
export function readFormText(bytes: Uint8Array, mostFields: number): FormFields | UnreadForm {
  let fields = 1;
  for (let at = bytes.indexOf(AND); at !== -1; at = bytes.indexOf(AND, at + 1)) {
    fields += 1;
    if (fields > mostFields) return 'too many fields';
  }
  const text = utf8Text(bytes);
  let isRead = text !== null;
  const found = parse(text ?? '', '&', '=', {
    maxKeys: 0,
    decodeURIComponent: (part) => {
      const decoded = percentDecoded(part);
      isRead &&= decoded !== null;
      return decoded ?? '';
    },
  });
  return isRead ? found : 'not UTF-8';
}

/** The last value of each field. */
export function lastValues(fields: FormFields): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, [value].flat().at(-1) ?? '']),
  );
}

/** Null: the bytes are no UTF-8. A percent sign without two hex digits stands for itself. */
function percentDecoded(text: string): string | null {
  if (!text.includes('%')) return text;
  const bytes = Buffer.from(text);
  let length = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const code = bytes[at] === PERCENT ? hexPair(bytes, at + 1) : -1;
    bytes[length] = code === -1 ? (bytes[at] ?? 0) : code;
    length += 1;
    if (code !== -1) at += 2;
  }
  const decoded = bytes.subarray(0, length);
  return isUtf8(decoded) ? decoded.toString() : null;
}

/** -1: there is none. */
function hexPair(bytes: Buffer, at: number): number {
  const [high, low] = [hexDigit(bytes[at]), hexDigit(bytes[at + 1])];
  return high === -1 || low === -1 ? -1 : high * 16 + low;
}

function hexDigit(code = 0): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
