import { randomUUID } from 'node:crypto';
import { widerNetworks } from '../../platform/http/counted-address.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { invalidValue, RequestError } from '../../platform/request-input.ts';
import { isCommonPassword } from './common-passwords.ts';
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
  if (await isCommonPassword(password)) {
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
 * one /48 network, wait in one line; a known browser has its own line. Throws RequestError `busy`.
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
