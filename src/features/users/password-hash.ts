import { type Argon2Parameters, argon2, createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import type { Database } from '../../platform/postgres/database.ts';
import { queryOnly } from '../../platform/postgres/sql.ts';

/** Costs of argon2id: memory in KiB, passes and lanes. */
type Costs = { memory: number; passes: number; parallelism: number };

/** OWASP's least, which keeps a core busy for some 50 ms. Raised here, hashes are renewed as people sign in. */
const COSTS: Costs = { memory: 19_456, passes: 2, parallelism: 1 };
const SALT_BYTES = 16;
const TAG_BYTES = 32;

/** A PHC string as `hashPassword` writes it. Limits are there because memory is what it costs. */
const PHC =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/;

const derive = promisify(argon2) as (algorithm: 'argon2id', parameters: Argon2Parameters) => Promise<Buffer>;

/** The password as a PHC string of argon2id. Runs beside the event loop. */
export async function hashPassword(
  password: string,
  costs: Costs = COSTS,
  salt: Buffer = randomBytes(SALT_BYTES),
): Promise<string> {
  const tag = await derive('argon2id', {
    ...costs,
    message: message(password),
    nonce: salt,
    tagLength: TAG_BYTES,
  });
  return `${beginning(costs)}${unpadded(salt)}$${unpadded(tag)}`;
}

export async function hashWithSalt(password: string, salt: Buffer): Promise<string> {
  return await hashPassword(password, COSTS, salt);
}

/** Those of the PHC strings that were made of this password. Those that share costs and salt cost one computation. */
export async function matchingHashes(password: string, phcs: readonly string[]): Promise<string[]> {
  const derived = new Map<string, Promise<Buffer>>();
  const matching: string[] = [];
  for (const phc of phcs) {
    const parts = PHC.exec(phc);
    if (parts === null) continue;
    const [memory = 0, passes = 0, parallelism = 0] = parts.slice(1, 4).map(Number);
    const [salt = '', encoded = ''] = parts.slice(4);
    const tag = Buffer.from(encoded, 'base64');
    const kind = `${beginning({ memory, passes, parallelism })}${salt}$${tag.length}`;
    const computation =
      derived.get(kind) ??
      derive('argon2id', {
        memory,
        passes,
        parallelism,
        message: message(password),
        nonce: Buffer.from(salt, 'base64'),
        tagLength: tag.length,
      });
    derived.set(kind, computation);
    if (timingSafeEqual(await computation, tag)) matching.push(phc);
  }
  return matching;
}

export function isHashOutdated(phc: string, salt?: Buffer): boolean {
  return !phc.startsWith(`${beginning(COSTS)}${salt === undefined ? '' : `${unpadded(salt)}$`}`);
}

function beginning({ memory, passes, parallelism }: Costs): string {
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$`;
}

/** One password typed on two keyboards may come in two spellings of Unicode (NIST SP 800-63B §3.1.1.2). */
function message(password: string): Buffer {
  return Buffer.from(password.normalize('NFKC'), 'utf8');
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '');
}

/** All accounts of an address share a salt, so that one computation tries a password against all of them. */
export async function passwordSaltOf(database: Database, email: string): Promise<Buffer> {
  const row = await queryOnly<{ salt: Buffer }>(database, 'select salt from password_salt');
  return createHash('sha256').update(row.salt).update(email).digest().subarray(0, SALT_BYTES);
}
