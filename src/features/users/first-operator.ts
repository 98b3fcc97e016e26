import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { EncryptionKey } from '../../platform/crypto/secret-box.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { RequestError } from '../../platform/request-input.ts';
import { checkEmail } from '../mail/email-address.ts';
import { hashNewPassword } from './passwords.ts';
import { actorAt, beginSession, type Visitor } from './sign-in.ts';
import { recordUserChange } from './user-authority.ts';
import { checkPersonName } from './user-input.ts';
import { hasUsers, insertUser, lockUsers } from './user-store.ts';

const CODE_BYTES = 24;

/** The link is in the log of the API, which may be kept for long. */
const VALID_MS = 86_400_000;

export type SetUpTools = { database: Database; encryptionKeys: readonly EncryptionKey[] };

/** The path and query of the page that makes the first operator, for a day; null as soon as there is a user. */
export async function setUpPath(
  { database, encryptionKeys }: SetUpTools,
  nowMs = Date.now(),
): Promise<string | null> {
  const [current] = encryptionKeys;
  if (current === undefined || (await hasUsers(database))) return null;
  return `/portal/set-up?code=${setUpCode(current, nowMs + VALID_MS)}`;
}

/** Whether the first operator can be made with this code: it is right, and there is no user yet. */
export async function mayBeSetUp({ database, encryptionKeys }: SetUpTools, code: string): Promise<boolean> {
  const endsAtMs = Number.parseInt(code.split('.', 1)[0] ?? '', 36);
  if (!(endsAtMs > Date.now())) return false;
  const isRight = encryptionKeys.some((key) => isSame(setUpCode(key, endsAtMs), code));
  return isRight && !(await hasUsers(database));
}

/** Of two at once one succeeds. Returns the token of a session. Throws RequestError: `set_up_closed`, `invalid_value`, `busy`. */
export async function createFirstOperator(
  tools: SetUpTools,
  given: { code: string; email: string; name: string; password: string },
  visitor: Visitor,
): Promise<string> {
  if (!(await mayBeSetUp(tools, given.code))) throw setUpClosed();
  const email = checkEmail(given.email);
  const name = await checkPersonName(given.name);
  const passwordHash = await hashNewPassword(tools.database, given.password, email);
  const id = await tools.database.transaction(async (trx) => {
    await lockUsers(trx);
    if (await hasUsers(trx)) throw setUpClosed();
    const userId = await insertUser(trx, { email, name, isOperator: true, passwordHash });
    const actor = actorAt({ id: userId, email }, visitor);
    await recordUserChange(trx, actor, { tenantId: null, action: 'user.first_operator_made', email });
    return userId;
  });
  return await beginSession(tools, { id, email }, visitor, { by: 'set-up link' });
}

function setUpClosed(): RequestError {
  return new RequestError('set_up_closed', 'This link does not work (any more).');
}

/** Says itself how long it counts. Every process can check it, and nothing has to be stored. */
function setUpCode({ key }: EncryptionKey, endsAtMs: number): string {
  const macKey = Buffer.from(hkdfSync('sha256', key, '', 'heliograph portal set-up', 32));
  const mac = createHmac('sha256', macKey).update(`the first operator until ${endsAtMs}`).digest();
  return `${endsAtMs.toString(36)}.${mac.subarray(0, CODE_BYTES).toString('base64url')}`;
}

function isSame(code: string, given: string): boolean {
  const [expected, actual] = [Buffer.from(code), Buffer.from(given)];
  return expected.length === actual.length && timingSafeEqual(expected, actual);
}
