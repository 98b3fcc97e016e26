import type { Database } from '../database/database.ts';
import { findUserByEmail, insertUser, replacePasswordHash } from '../database/users.ts';
import type { PortalRole } from '../domain/portal-role.ts';
import { checkPassword, hashNewPassword } from './passwords.ts';

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
    const known = await findUserByEmail(database, email);
    if (known !== null && (await checkPassword(password, known.passwordHash))) continue;
    const passwordHash = await hashNewPassword(password, email);
    if (known === null) await insertUser(database, { email, name, role, tenantId, passwordHash });
    else await replacePasswordHash(database, known.id, { previous: known.passwordHash, next: passwordHash });
  }
}
