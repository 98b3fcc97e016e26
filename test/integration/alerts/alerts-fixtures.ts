import type { Mailer } from '../../../src/features/mail/mails.ts';
import { insertMembership } from '../../../src/features/users/memberships.ts';
import { insertUser } from '../../../src/features/users/user-store.ts';
import { keepAlerts } from '../../../src/ops/alerts/alert-keeper.ts';
import { type AlertViewer, listAlerts } from '../../../src/ops/alerts/alerts.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { silentLogger } from '../../support/silent-logger.ts';

/** One turn of the keeper, however lately the last one was. */
export async function turn(database: Database, mailer: Mailer = null, now = new Date()): Promise<void> {
  await execute(database, 'update housekeeping_steps set next_at = now()');
  await keepAlerts({ database, logger: silentLogger, mailer }, now);
}

/** The open alerts that a viewer sees, `kind subject`. */
export async function openAlerts(database: Database, viewer: AlertViewer): Promise<string[]> {
  const alerts = await listAlerts(database, viewer, { state: 'open', before: null, limit: 100 });
  return alerts.map(({ kind, subject }) => `${kind} ${subject}`).sort();
}

/** A user of a tenant, or an operator. */
export async function addUser(
  database: Database,
  email: string,
  place: { tenantId: string; role: 'admin' | 'member' } | 'operator',
): Promise<AlertViewer> {
  const isOperator = place === 'operator';
  const userId = await database.transaction(async (trx) => {
    const id = await insertUser(trx, { email, name: email, isOperator, passwordHash: null });
    if (!isOperator) await insertMembership(trx, { userId: id, tenantId: place.tenantId, role: place.role });
    return id;
  });
  return { userId, tenantId: isOperator ? null : place.tenantId };
}
