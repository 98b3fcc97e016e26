import { minimalEnvironment, runCommand } from './run-command.ts';

/** How PostgreSQL, which refuses to run as root, is run. */
export interface PostgresAccount {
  /** Put before its programs; empty for an ordinary user. */
  readonly launcher: readonly string[];
  /** Who has to own the data directory, as seen from here. */
  readonly ownerId: { readonly uid: number; readonly gid: number };
}

const NOBODY = 65_534;

/** Inside its own user namespace root is user 1000 and still owns its files. */
const OWN_NAMESPACE: PostgresAccount = {
  launcher: ['unshare', '--user', '--map-user=1000', '--map-group=1000'],
  ownerId: { uid: 0, gid: 0 },
};

/**
 * For containers without user namespaces: the account nobody, which may pass every directory
 * (the clone may be below one that is closed to others). no_setuid_fixup keeps that right in access(2).
 */
const NOBODY_ACCOUNT: PostgresAccount = {
  launcher: [
    ...['setpriv', '--reuid', String(NOBODY), '--regid', String(NOBODY), '--clear-groups'],
    ...['--securebits', '+no_setuid_fixup', '--inh-caps', '+dac_override', '--ambient-caps', '+dac_override'],
  ],
  ownerId: { uid: NOBODY, gid: NOBODY },
};

/**
 * The account for PostgreSQL: this user, or for root the first way that can run `program` and write `directory`.
 * Throws with what was tried when root has none.
 */
export async function choosePostgresAccount(program: string, directory: string): Promise<PostgresAccount> {
  const uid = process.getuid?.();
  if (uid !== 0) return { launcher: [], ownerId: { uid: uid ?? 0, gid: process.getgid?.() ?? 0 } };
  const reasons: string[] = [];
  for (const account of [OWN_NAMESPACE, NOBODY_ACCOUNT]) {
    const check = ['sh', '-c', '"$0" --version >/dev/null && test -w "$1"', program, directory];
    const { code, output } = await runCommand([...account.launcher, ...check], {
      env: minimalEnvironment(),
      timeoutMs: 10_000,
    });
    if (code === 0) return account;
    reasons.push(`${account.launcher[0]}: ${output.trim() || `exit code ${code}`}`);
  }
  throw new Error(
    `PostgreSQL refuses to run as root, and running it under another account failed (${reasons.join('; ')}). ` +
      'Run this as an ordinary user, or install util-linux (unshare, setpriv).',
  );
}
