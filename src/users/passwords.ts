import { randomUUID } from 'node:crypto';
import { AccountError, invalidValue } from '../platform/account-error.ts';
import { countedAddress } from '../platform/http/counted-address.ts';
import type { Database } from '../platform/postgres/database.ts';
import { isCommonPassword } from './common-passwords.ts';
import { hashPassword, hashWithSalt, matchingHashes } from './password-hash.ts';
import { passwordSaltOf } from './password-salt.ts';

const MIN_CHARS = 12;
/** Longer ones are no safer, and hashing them is work. */
const MAX_CHARS = 256;

/** Each takes a thread and 19 MiB; more at once would hold up everything else that needs a thread. */
const AT_ONCE = 2;
const MAX_WAITING = 40;

/**
 * Checks and hashes a password that somebody chose. Long is all it must be (NIST SP 800-63B), but neither the e-mail
 * address nor one of those that everybody takes. Throws AccountError `invalid_value` or `busy`.
 */
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

/**
 * Which of these hashes a password opens. Takes as long when there is none. Those who come from one address wait in one
 * line. Throws AccountError `busy`.
 */
export async function checkPassword(
  password: string,
  hashes: readonly string[],
  address: string | null = null,
): Promise<string[]> {
  return await inTurn(countedAddress(address ?? ''), async () => {
    // Of a password that nobody knows. Awaited in either case: the first time, it takes a while.
    decoy ??= hashPassword(randomUUID());
    const nobodys = await decoy;
    return await matchingHashes(password, hashes.length === 0 ? [nobodys] : hashes);
  });
}

type Waiting = { begin: () => void; refuse: (error: AccountError) => void };

let running = 0;
const lines = new Map<string, Waiting[]>();

/**
 * A few at a time, and not endlessly many behind them. Those who wait take turns by line, and when there are too many,
 * the last of the longest line is refused: whoever tries often waits for himself.
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
  const turn = new Promise<void>((begin, refuse) => line.push({ begin, refuse }));
  const all = [...lines.values()];
  if (all.reduce((sum, { length }) => sum + length, 0) > MAX_WAITING) {
    const longest = all.reduce((left, right) => (right.length > left.length ? right : left));
    longest.pop()?.refuse(busy());
  }
  await turn;
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

function busy(): AccountError {
  return new AccountError('busy', 'Too many people are signing in at this moment. Try again in a minute.');
}

function weak(message: string): AccountError {
  return invalidValue(message, 'password');
}
