import { randomUUID } from 'node:crypto';
import { widerNetworks } from '../platform/http/counted-address.ts';
import type { Database } from '../platform/postgres/database.ts';
import { invalidValue, RequestError } from '../platform/request-input.ts';
import { hashPassword, hashWithSalt, matchingHashes, passwordSaltOf } from './password-hash.ts';

const MIN_CHARS = 12;
/** Longer ones are no safer, and hashing them is work. */
const MAX_CHARS = 256;

/** Each takes a thread and 19 MiB; more at once would hold up everything else that needs a thread. */
const AT_ONCE = 2;
const MAX_WAITING = 40;

/** Throws RequestError `busy`, or `invalid_value` for one that is short (NIST SP 800-63B), common, or the e-mail address. */
export async function hashNewPassword(database: Database, password: string, email: string): Promise<string> {
  const length = [...password].length;
  if (length < MIN_CHARS) throw weak(`The password must have at least ${MIN_CHARS} characters.`);
  if (length > MAX_CHARS) throw weak(`The password must have at most ${MAX_CHARS} characters.`);
  if (password.includes('\u0000') || !password.isWellFormed()) {
    throw weak('The password has a character that cannot be typed.');
  }
  const plain = password.trim().toLowerCase();
  const [local] = email.split('@');
  if (plain === email || plain === local) throw weak('The password must not be the e-mail address.');
  if (isCommonPassword(password)) {
    throw weak('This password is one of those that are guessed first; take another one.');
  }
  const salt = await passwordSaltOf(database, email);
  return await inTurn(`for ${email}`, () => hashWithSalt(password, salt));
}

let decoy: Promise<string> | null = null;

/** Who waits for a password check: by address, and in a browser that has signed in to the account before by its id. */
export type PasswordVisitor = { ip: string | null; deviceId?: string | null };

/**
 * Which of these hashes a password opens. Takes as long when there is none. Those who come from one address, or from
 * one /48 network, wait in one line; a known browser has a line of its own. Throws RequestError `busy`.
 */
export async function checkPassword(
  password: string,
  hashes: readonly string[],
  { ip, deviceId = null }: PasswordVisitor = { ip: null },
): Promise<string[]> {
  const network = widerNetworks(ip ?? '')?.per48 ?? ip ?? '';
  const line = deviceId === null ? network : `${KNOWN}${deviceId}`;
  return await inTurn(line, async () => {
    // Of an unknown password. Awaited in either case: the first time, it takes a while.
    decoy ??= hashPassword(randomUUID());
    const nobodys = await decoy;
    return await matchingHashes(password, hashes.length === 0 ? [nobodys] : hashes);
  });
}

/** Lines that strangers cannot stand in begin with it. */
const KNOWN = 'known ';

type Waiting = { begin: () => void; refuse: (error: RequestError) => void; number: number };

let running = 0;
let arrived = 0;
const lines = new Map<string, Waiting[]>();

/**
 * A few at a time, and not endlessly many behind them. Those who wait take turns by line, and when there are too many,
 * the newest of the longest line is refused: frequent attempts delay only each other.
 */
async function inTurn<T>(line: string, work: () => Promise<T>): Promise<T> {
  if (running >= AT_ONCE) await wait(line);
  else running += 1;
  try {
    return await work();
  } finally {
    beginNext();
  }
}

async function wait(name: string): Promise<void> {
  const line = lines.get(name) ?? [];
  lines.set(name, line);
  arrived += 1;
  const number = arrived;
  const turn = new Promise<void>((begin, refuse) => line.push({ begin, refuse, number }));
  if ([...lines.values()].flat().length > MAX_WAITING) refuseNewest();
  await turn;
}

/** A known browser keeps its place while a stranger waits. */
function refuseNewest(): void {
  const strangers = [...lines].filter(([name]) => !name.startsWith(KNOWN));
  const all = (strangers.length > 0 ? strangers : [...lines]).map(([, line]) => line);
  const newest = (line: Waiting[]) => line.at(-1)?.number ?? 0;
  const [longest] = all.toSorted((left, right) => right.length - left.length || newest(right) - newest(left));
  longest?.pop()?.refuse(busy());
}

function beginNext(): void {
  for (const [name, line] of lines) {
    lines.delete(name);
    const next = line.shift();
    if (next === undefined) continue;
    // Its line goes to the back.
    if (line.length > 0) lines.set(name, line);
    next.begin();
    return;
  }
  running -= 1;
}

function busy(): RequestError {
  return new RequestError('busy', 'Too many people are signing in at this moment. Try again in a minute.');
}

function weak(message: string): RequestError {
  return invalidValue(message, 'password');
}

/** The passwords of twelve characters and more that attackers try first, in lower case and without what surrounds them. */
const COMMON = new Set(
  `password1234 password12345 password123456 passwordpassword password123! mypassword123 passw0rd1234
  p@ssw0rd1234 p@ssword1234 123456789012 1234567890123 1234567890 12345678901234567890 123123123123 111111111111
  000000000000 112233445566 123456123456 1q2w3e4r5t6y 1qaz2wsx3edc 1q2w3e4r5t6y7u 1qazxsw23edc qwertyuiop12
  qwertyuiop123 qwertyuiopas qwertyuiopasdf qwerty123456 qwerty1234567 qwertyqwerty qwerty12345678 asdfghjkl123
  zxcvbnm12345 abcdefghijkl abcdefghijklmnop abcd12345678 abc123abc123 abcdef123456 a1b2c3d4e5f6 iloveyou1234
  iloveyouforever iloveyou123456 letmein12345 letmeinplease welcome12345 welcome123456 welcome1234 administrator
  administrator1 admin1234567 admin123456789 adminadminadmin admin12345678 rootrootroot changeme1234 changemenow12
  changeme123456 correcthorsebatterystaple trustno1trustno1 football1234 baseball1234 superman1234 dragon123456
  monkey123456 princess1234 sunshine1234 liverpool123 whatsapp1234 whatsapp12345 facebook1234 heliograph12
  heliograph123 heliograph1234 heliographheliograph testtesttest test12345678 test1234test1234 secretsecret
  secret123456 defaultpassword temporarypassword temppassword companyname123 summer2024!! winter2025!! spring2026!!
  summer2025!! summer2026!! autumn2026!! november2026 december2026 october2026!`.split(/\s+/),
);

function isCommonPassword(password: string): boolean {
  const plain = password.trim().toLowerCase();
  return COMMON.has(plain) || new Set(plain).size < 4 || isRun(plain);
}

/** All of it counts up or down: abcdefghijklm, 9876543210987. */
function isRun(text: string): boolean {
  const steps = [...text]
    .slice(1)
    .map((char, at) => (char.codePointAt(0) ?? 0) - (text.codePointAt(at) ?? 0));
  const regular = (step: number) => steps.filter((one) => one === step || Math.abs(one) === 9).length;
  return regular(1) === steps.length || regular(-1) === steps.length;
}
