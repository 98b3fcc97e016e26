import { afterAll, beforeAll, beforeEach } from 'vitest';
import { noteTokenRefused } from '../../../src/accounts/access-tokens.ts';
import type { AlertViewer } from '../../../src/alerts/alerts.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { addUser, OTHER_WABA, openAlerts, tenantOf, turn, WABA } from './alerts-fixtures.ts';

export let store: TestDatabase;

export let admin: AlertViewer;

export let stranger: AlertViewer;

export let operator: AlertViewer;

export let endpointId: string;

export const seen = (viewer = admin) => openAlerts(store.database, viewer);

export const look = () => turn(store.database);

/** Upstream refuses the access token of the WABA since a while, such as '1 hour'. */
export async function refuseToken(since: string): Promise<void> {
  await noteTokenRefused(store.database, WABA, 'Session has expired');
  await execute(
    store.database,
    'update wabas set token_refused_at = now() - cast(:since as interval) where waba_id = :wabaId',
    { since, wabaId: WABA },
  );
}

/** A database with users for the tests of a file; each test begins without alerts. */
export function useAlertStore(): void {
  beforeAll(async () => {
    store = await createTestDatabase();
    const { database } = store;
    await seedFixtureAccounts(database);
    admin = await addUser(database, 'a@store.example', {
      tenantId: await tenantOf(database, WABA),
      role: 'admin',
    });
    stranger = await addUser(database, 'b@bazaar.example', {
      tenantId: await tenantOf(database, OTHER_WABA),
      role: 'admin',
    });
    operator = await addUser(database, 'operator@example.com', 'operator');
  });
  afterAll(() => store?.close());
  beforeEach(async () => {
    const { database } = store;
    await database.raw(
      `delete from alerts; delete from alert_notices; delete from workflow_tasks; delete from endpoint_failures;
     delete from delivery_queue; delete from api_keys; delete from webhook_endpoints; delete from quarantine_counts;
     delete from inbox; delete from mails; update users set alert_mailed_at = null;
     update wabas set token_refused_at = null, operations_url = null, operations_secret_sealed = null`,
    );
    endpointId = (await addEndpoint(database, WABA, 'https://shop.example/hook')).id;
  });
}
