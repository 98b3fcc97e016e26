import { invalidValue, shown } from '../../platform/request-input.ts';

/** As HTML's input type=email has it, and ASCII only: two spellings of one address must not be two users. */
const EMAIL = /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*$/;
const MAX_EMAIL_CHARS = 254;

/** An e-mail address in the form that users are stored under; null when it can be none. */
export function emailOf(text: string): string | null {
  const email = text.trim().toLowerCase();
  return email.length <= MAX_EMAIL_CHARS && EMAIL.test(email) ? email : null;
}

/** As `emailOf`. Throws RequestError `invalid_value`. */
export function checkEmail(text: string): string {
  const email = emailOf(text);
  if (email === null) throw invalidValue(`${shown(text)} is no e-mail address.`, 'email');
  return email;
}
