import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Beside the list of others: long ones, and those that this product suggests. Lower case, without blanks around them. */
const OWN = new Set(
  `passwordpassword 12345678901234567890 123123123123 qwertyuiopas qwertyuiopasdf qwertyqwerty abcdefghijkl
  abcdefghijklmnop abc123abc123 iloveyouforever letmeinplease administrator adminadminadmin rootrootroot changemenow
  correcthorsebatterystaple trustno1trustno1 heliograph heliographheliograph whatsapp testtesttest secretsecret
  defaultpassword temporarypassword temppassword companyname spring summer autumn winter january february march april
  june july august september october november december`.split(/\s+/),
);

const MOST_PADDING = 8;
const SHORTEST_CORE = 4;

/**
 * Whether attackers try a password among the first: it is on a list of 49,000 that leaked most often, or is one of them with
 * digits and signs around it or in place of letters, or again and again, or a run of neighbours, or has few signs.
 */
export async function isCommonPassword(password: string): Promise<boolean> {
  const plain = password.trim().toLowerCase();
  if (new Set(plain).size < 4 || isRun(plain)) return true;
  const leaked = await leakedPasswords();
  const isKnown = (text: string) => OWN.has(text) || leaked.has(text);
  if (isKnown(plain) || isKnown(repeated(plain))) return true;
  const core = /\p{L}.*\p{L}/u.exec(plain)?.[0] ?? '';
  if (core.length < SHORTEST_CORE || plain.length - core.length > MOST_PADDING) return false;
  return [core, asLetters(core)].some((text) => isKnown(text) || isKnown(repeated(text)));
}

let loading: Promise<ReadonlySet<string>> | null = null;

/** The list of @zxcvbn-ts/language-common 4.1.3 (MIT licence). Read with the first new password: most processes never see one. */
async function leakedPasswords(): Promise<ReadonlySet<string>> {
  loading ??= readFile(join(import.meta.dirname, 'leaked-passwords.txt'), 'utf8').then(
    (text) => new Set(text.split('\n')),
  );
  return await loading;
}

const LETTERS: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '8': 'b',
  '9': 'g',
  '@': 'a',
  $: 's',
  '!': 'i',
  '+': 't',
  '€': 'e',
};

function asLetters(text: string): string {
  return [...text].map((char) => LETTERS[char] ?? char).join('');
}

/** What a text repeats; the text itself if it repeats nothing. */
function repeated(text: string): string {
  return text.slice(0, (text + text).indexOf(text, 1));
}

/** All of it counts up or down: abcdefghijklm, 9876543210987. */
function isRun(text: string): boolean {
  const steps = [...text]
    .slice(1)
    .map((char, at) => (char.codePointAt(0) ?? 0) - (text.codePointAt(at) ?? 0));
  const regular = (step: number) => steps.filter((one) => one === step || Math.abs(one) === 9).length;
  return regular(1) === steps.length || regular(-1) === steps.length;
}
