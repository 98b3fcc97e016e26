import { invalidValue } from './account-error.ts';

const UPSTREAM_ID = /^\d{1,64}$/;
const ROW_ID = /^[1-9]\d{0,17}$/;
const ACCESS_TOKEN = /^[\x21-\x7e]{1,4096}$/;
const MAX_NAME_CHARS = 200;
const CONTROL_CHARACTER = /[\p{Cc}\p{Zl}\p{Zp}]/u;
const SHOWN_CHARS = 80;

/** An id that upstream gave, such as a WABA's: up to 64 digits. Throws AccountError `invalid_value`. */
export function checkUpstreamId(what: string, id: string): string {
  if (UPSTREAM_ID.test(id)) return id;
  throw invalidValue(`${what} must be 1 to 64 digits, not ${shown(id)}.`);
}

/** An id that our database gave. Throws AccountError `invalid_value`. */
export function checkRowId(what: string, id: string): string {
  if (ROW_ID.test(id)) return id;
  throw invalidValue(`${what} must be a whole number, not ${shown(id)}.`);
}

/** A name for people: one line of up to 200 characters, trimmed. Throws AccountError `invalid_value`. */
export function checkName(what: string, text: string): string {
  const name = checkDescription(what, text);
  if (name === '') throw invalidValue(`${what} must not be empty.`);
  return name;
}

/** As `checkName`, and may be empty. Throws AccountError `invalid_value`. */
export function checkDescription(what: string, text: string): string {
  const name = text.trim();
  if (name.length > MAX_NAME_CHARS) {
    throw invalidValue(
      `${what} must have at most ${MAX_NAME_CHARS} characters; this one has ${name.length}.`,
    );
  }
  if (CONTROL_CHARACTER.test(name) || !name.isWellFormed()) {
    throw invalidValue(`${what} must be one line of text without control characters.`);
  }
  return name;
}

/** An upstream access token; the message of the error never holds it. Throws AccountError `invalid_value`. */
export function checkAccessToken(text: string): string {
  const token = text.trim();
  if (ACCESS_TOKEN.test(token)) return token;
  throw invalidValue(
    'The access token must be 1 to 4096 visible ASCII characters on one line; copy it once more.',
  );
}

/** A refused value as it may stand in a message: quoted, on one line, not too long. */
export function shown(text: string): string {
  return JSON.stringify(text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text);
}
