import type { Database } from '../platform/postgres/database.ts';
import { insertMembership } from '../users/memberships.ts';
import { checkPassword, hashNewPassword } from '../users/passwords.ts';
import type { PortalRole } from '../users/portal-role.ts';
import { findPasswordHash, findUsersByEmail, insertUser, replacePasswordHash } from '../users/user-store.ts';

/** Somebody who may look around in the demonstration's portal. */
export type DemoUser = {
  email: string;
  name: string;
  role: PortalRole;
  tenantId: string | null;
  password: string;
};

/** Makes sure that the demonstration's users exist with these passwords, which is what the terminal says of them. */
export async function seedDemoUsers(database: Database, users: readonly DemoUser[]): Promise<void> {
  for (const { email, name, role, tenantId, password } of users) {
    const [known] = await findUsersByEmail(database, email);
    const previous = known === undefined ? null : await findPasswordHash(database, known.id);
    if (previous !== null && (await checkPassword(password, [previous])).length > 0) continue;
    const next = await hashNewPassword(database, password, email);
    if (known !== undefined) {
      await replacePasswordHash(database, known.id, { previous, next });
      continue;
    }
    await database.transaction(async (trx) => {
      const isOperator = role === 'operator';
      const userId = await insertUser(trx, { email, name, isOperator, passwordHash: next });
      if (!isOperator && tenantId !== null) await insertMembership(trx, { userId, tenantId, role });
    });
  }
}
