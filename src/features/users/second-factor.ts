import type { Actor } from '../../platform/audit/audit.ts';
import { sealedSecret } from '../../platform/crypto/sealed-secret.ts';
import { openOrNull, type SecretBox } from '../../platform/crypto/secret-box.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import { RequestError } from '../../platform/request-input.ts';
import type { OwnSession } from './sign-in.ts';
import { newRecoveryCodes, newTotpSecret, recoveryCodeHash, totpStep, totpUri } from './totp.ts';
import {
  type Authority,
  lockedUser,
  recordAccountChange,
  recordUserChange,
  refuseMarkedSession,
} from './user-authority.ts';
import { addUserNotice } from './user-notices.ts';
import { completeSession, endSessions } from './user-sessions.ts';

export const TOTP_SECRET = sealedSecret({ table: 'user_totp', id: ['user_id', 'bigint'], secret: 'secret' });

type Tools = {
  database: Database;
  secretBox: SecretBox;
  now: () => number;
};

/** A second factor that is being set up. Nothing of it is stored until a code of it has come. */
export type NewSecondFactor = {
  /** What the form carries: bound to the user, and unreadable to others. */
  sealed: string;
  secret: string;
  uri: string;
};

/** Begins to set up a second factor, or goes on with the one in `sealed`. */
export function newSecondFactor(
  { secretBox }: Pick<Tools, 'secretBox'>,
  { userId, email }: Pick<OwnSession['viewer'], 'userId' | 'email'>,
  sealed: string | null,
): NewSecondFactor {
  const place = TOTP_SECRET.place(userId);
  const secret = sealed === null ? newTotpSecret() : openOrNull(secretBox, sealed, place);
  if (secret === null)
    throw new RequestError('wrong_code', 'This form is too old. Open the page again.', 'code');
  return { secret, sealed: sealed ?? secretBox.seal(secret, place), uri: totpUri(secret, email) };
}

/**
 * Makes a second factor count whose first code is right, in this session too. Returns the recovery codes, which are
 * shown this once, and the new token of the session. All other sessions of the user end.
 * Throws RequestError: `wrong_code`, `second_factor_set`, `password_not_own`.
 */
export async function enableSecondFactor(
  tools: Tools,
  { id, viewer }: OwnSession,
  given: { sealed: string; code: string },
  actor: Actor,
): Promise<{ token: string; recoveryCodes: string[] }> {
  const { userId, email, tenantId } = viewer;
  refuseMarkedSession(viewer);
  const { secret } = newSecondFactor(tools, viewer, given.sealed);
  const step = totpStep(secret, given.code, tools.now());
  if (step === null) throw wrongCode();
  const sealed = tools.secretBox.seal(secret, TOTP_SECRET.place(userId));
  return await tools.database.transaction(async (trx) => {
    const added = await execute(
      trx,
      'insert into user_totp (user_id, secret_sealed, last_step) values (:userId, :sealed, :step) on conflict do nothing',
      { userId, sealed, step },
    );
    if (added === 0) throw new RequestError('second_factor_set', 'Your account has a second factor already.');
    const recoveryCodes = await replaceRecoveryCodes(trx, userId);
    await endSessions(trx, userId, { but: id });
    const token = await completeSession(trx, id);
    await recordUserChange(trx, actor, { tenantId, action: 'user.second_factor_set', email });
    await addUserNotice(trx, userId, { kind: 'second_factor_set', by: null, ip: actor.ip });
    return { token, recoveryCodes };
  });
}

/** Returns the new token of the session. Throws RequestError `wrong_code`. */
export async function giveSecondFactor(
  tools: Tools,
  { id, viewer }: OwnSession,
  code: string,
  actor: Actor,
): Promise<string> {
  const { email, tenantId } = viewer;
  const by = await useCode(tools, { viewer }, code, actor);
  return await tools.database.transaction(async (trx) => {
    const token = await completeSession(trx, id);
    const change = { tenantId, action: 'user.second_factor_given', email, detail: { by } };
    await recordUserChange(trx, actor, change);
    return token;
  });
}

/** Neither a code nor a recovery code works twice. Throws RequestError `wrong_code`, which the audit log notes. */
export async function useCode(
  tools: Tools,
  { viewer: { userId, email, tenantId } }: Pick<OwnSession, 'viewer'>,
  code: string,
  actor: Actor,
): Promise<'code' | 'recovery code'> {
  if (await useTotp(tools, userId, code)) return 'code';
  const left = await useRecoveryCode(tools.database, userId, code);
  if (left === null) {
    await recordUserChange(tools.database, actor, { tenantId, action: 'user.second_factor_failed', email });
    throw wrongCode();
  }
  const change = { tenantId, action: 'user.recovery_code_used', email, detail: { left } };
  await recordUserChange(tools.database, actor, change);
  return 'recovery code';
}

async function useTotp({ database, secretBox, now }: Tools, userId: string, code: string): Promise<boolean> {
  const stored = 'select secret_sealed as sealed from user_totp where user_id = :userId';
  const [row] = await query<{ sealed: string }>(database, stored, { userId });
  if (row === undefined) return false;
  const step = totpStep(secretBox.open(row.sealed, TOTP_SECRET.place(userId)), code, now());
  if (step === null) return false;
  // Of two at once with one code, one succeeds.
  const text = 'update user_totp set last_step = :step where user_id = :userId and last_step < :step';
  return (await execute(database, text, { userId, step })) === 1;
}

/** How many are left; null: it is none of them. */
async function useRecoveryCode(database: Database, userId: string, code: string): Promise<number | null> {
  const codeHash = recoveryCodeHash(code);
  if (codeHash === null) return null;
  const text = 'delete from recovery_codes where user_id = :userId and code_hash = :codeHash';
  const used = await execute(database, text, { userId, codeHash });
  return used === 1 ? await recoveryCodesLeft(database, userId) : null;
}

export async function recoveryCodesLeft(database: Database, userId: string): Promise<number> {
  const rows = await query(database, 'select from recovery_codes where user_id = :userId', { userId });
  return rows.length;
}

/** Gives a user new recovery codes, which are shown this once; the old ones end. Throws RequestError: `no_second_factor`, `password_not_own`. */
export async function renewRecoveryCodes(
  { database }: Pick<Tools, 'database'>,
  { viewer }: OwnSession,
  actor: Actor,
): Promise<string[]> {
  refuseMarkedSession(viewer);
  const { userId, email, tenantId } = viewer;
  return await database.transaction(async (trx) => {
    const [row] = await query(trx, 'select from user_totp where user_id = :userId for update', { userId });
    if (row === undefined) throw noSecondFactor('Your account');
    const codes = await replaceRecoveryCodes(trx, userId);
    await recordUserChange(trx, actor, { tenantId, action: 'user.recovery_codes_renewed', email });
    return codes;
  });
}

async function replaceRecoveryCodes(trx: Transaction, userId: string): Promise<string[]> {
  const codes = newRecoveryCodes();
  await execute(trx, 'delete from recovery_codes where user_id = :userId', { userId });
  for (const code of codes) {
    const codeHash = recoveryCodeHash(code);
    await execute(trx, 'insert into recovery_codes (user_id, code_hash) values (:userId, :codeHash)', {
      userId,
      codeHash,
    });
  }
  return codes;
}

/** Switches one's own second factor off. Throws RequestError: `no_second_factor`, `password_not_own`. */
export async function removeSecondFactor(
  { database }: Pick<Tools, 'database'>,
  { viewer }: OwnSession,
  actor: Actor,
): Promise<void> {
  refuseMarkedSession(viewer);
  const { userId, email, tenantId } = viewer;
  await database.transaction(async (trx) => {
    if (!(await deleteSecondFactor(trx, userId))) throw noSecondFactor('Your account');
    await recordUserChange(trx, actor, { tenantId, action: 'user.second_factor_removed', email });
  });
}

/**
 * Takes the second factor from a user who has lost it, for operators, and ends all sessions of the user, who is notified
 * at the next sign-in. Throws RequestError: `unknown_user`, `no_second_factor`.
 */
export async function resetSecondFactor(
  { database }: Pick<Tools, 'database'>,
  { actor }: Authority,
  userId: string,
): Promise<void> {
  await database.transaction(async (trx) => {
    const user = await lockedUser(trx, userId);
    if (!(await deleteSecondFactor(trx, userId))) throw noSecondFactor(user.email);
    await endSessions(trx, userId);
    await addUserNotice(trx, userId, { kind: 'second_factor_reset', by: actor.name, ip: null });
    await recordAccountChange(trx, actor, user, { action: 'user.second_factor_reset' });
  });
}

async function deleteSecondFactor(trx: Transaction, userId: string): Promise<boolean> {
  return (await execute(trx, 'delete from user_totp where user_id = :userId', { userId })) === 1;
}

function wrongCode(): RequestError {
  return new RequestError(
    'wrong_code',
    'This code is not right, or it was used already. Wait for the next one.',
    'code',
  );
}

function noSecondFactor(who: string): RequestError {
  return new RequestError('no_second_factor', `${who} has no second factor.`);
}
