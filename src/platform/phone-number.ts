/** Arabic-Indic, Persian and Devanagari digits; full-width and other typographic ones are normalized before. */
const FOREIGN_DIGIT = /[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f]/g;
const DEVANAGARI_ZERO = 0x0966;

/** Direction marks, zero-width spaces and the like, as they are copied with a number. */
const INVISIBLE = /\p{Cf}/gu;

const NUMBER = /^(?:tel:|whatsapp:)?[\s(+]*\d[\d\s().\-/\u00b7\u2022\u2212\p{Pd}]*$/iu;

/** A zero that is dialled only within the country, or not: which one is up to the country. */
const TRUNK_ZERO = /\(\s*0\s*\)/;

/** A number that a program has read as a number and written as one. */
const DECIMAL = /^\+?\d{5,}\.0{1,2}$/;

/** How many digits a number may have that a message is sent to. */
export const PHONE_DIGITS = { minimum: 4, maximum: 17 };

/** Text as it was meant: without invisible characters, and spaces at its ends. */
export function visibleText(text: string): string {
  return text.replace(INVISIBLE, '').trim();
}

/**
 * The digits of a phone number as upstream writes it, from any usual form: `+1 (202) 555-0143`, `001202…`, `tel:+1-202-…`.
 * Null for what is none. The one reading, for every place that takes a phone number.
 */
export function readPhoneNumber(text: string): string | null {
  const plain = visibleText(text).normalize('NFKC').replace(FOREIGN_DIGIT, plainDigit);
  if (!NUMBER.test(plain) || TRUNK_ZERO.test(plain) || DECIMAL.test(plain)) return null;
  // No country code begins with 0: two of them stand for the +.
  return plain.replace(/\D/g, '').replace(/^00+(?=\d)/, '');
}

function plainDigit(digit: string): string {
  const code = digit.charCodeAt(0);
  return String(code >= DEVANAGARI_ZERO ? code - DEVANAGARI_ZERO : code & 0xf);
}

/**
 * Countries whose mobile numbers are written with a digit more or without it, both for one phone. Brazil's ninth digit was put before numbers that began
 * with 6 to 9: what begins with 2 to 5 is another subscriber's, a landline.
 */
const WITH_OR_WITHOUT: readonly { long: RegExp; short: RegExp; digit: string }[] = [
  { long: /^(55\d\d)9([6-9]\d{7})$/, short: /^(55\d\d)([6-9]\d{7})$/, digit: '9' },
  { long: /^(52)1(\d{10})$/, short: /^(52)(\d{10})$/, digit: '1' },
  { long: /^(54)9(\d{10})$/, short: /^(54)(\d{10})$/, digit: '9' },
];

/** The same phone in the other spelling of its country, for the digits of a number; null: there is only one. */
export function otherSpelling(digits: string): string | null {
  for (const { long, short, digit } of WITH_OR_WITHOUT) {
    if (long.test(digits)) return digits.replace(long, '$1$2');
    if (short.test(digits)) return digits.replace(short, (_, country, rest) => `${country}${digit}${rest}`);
  }
  return null;
}

/** The ways of writing that upstream documents; what is written otherwise goes out as a plus sign and digits. */
const UPSTREAM_FORM = /^\+?[1-9][0-9 ().-]*$/;

/** A phone number as upstream reads it as we do; what is no phone number stays as it is. */
export function phoneForUpstream(text: string): string {
  const digits = readPhoneNumber(text);
  return digits === null || UPSTREAM_FORM.test(text) ? text : `+${digits}`;
}
