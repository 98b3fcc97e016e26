import { beforeEach, expect } from 'vitest';
import { noteQuietChanges } from '../../../src/engine/endpoint/endpoint-changes.ts';
import { noteTokenRefused } from '../../../src/features/accounts/access-tokens.ts';
import type { AlertViewer } from '../../../src/ops/alerts/alerts.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { addEndpoint, type FreshTenant, freshTenant } from '../../support/test-accounts.ts';
import { databaseOfFile, type TestDatabase } from '../../support/test-database.ts';
import { addUser, openAlerts, turn } from './alerts-fixtures.ts';

export let store: TestDatabase;

export let tenant: FreshTenant;

export let otherTenant: FreshTenant;

/** Of the tenant. */
export let admin: AlertViewer;

/** Of the other tenant. */
export let stranger: AlertViewer;

export let operator: AlertViewer;

export let endpointId: string;

export const seen = (viewer = admin) => openAlerts(store.database, viewer);

export const look = () => turn(store.database);

/** Every attempt fails since more than an hour at an endpoint that stays open, and its tenant is not yet notified. */
export async function failQuietly(): Promise<void> {
  const { database } = store;
  await database.raw(`update endpoint_health set failing_since = now() - interval '61 minutes'`);
  expect(await noteQuietChanges(database, 'failing')).toEqual([endpointId]);
}

/** Upstream refuses the access token of the WABA since a while, such as '1 hour'. */
export async function refuseToken(since: string): Promise<void> {
  await noteTokenRefused(store.database, tenant.wabaId, 'Session has expired');
  await execute(
    store.database,
    'update wabas set token_refused_at = now() - cast(:since as interval) where waba_id = :wabaId',
    { since, wabaId: tenant.wabaId },
  );
}

/**
 * A database for the tests of a file. Operators see the alerts of all tenants, so each test begins without any and
 * without what could cause one, and with new tenants and users.
 */
export function useAlertStore(): void {
  store = databaseOfFile();
  beforeEach(async () => {
    const { database } = store;
    await database.raw(
      `delete from alerts; delete from alert_notices; delete from workflow_tasks; delete from endpoint_failures;
       delete from delivery_queue; delete from api_key_requests; delete from api_keys; delete from webhook_endpoints;
       delete from quarantine_counts; delete from upstream_troubles; delete from waba_hours; delete from events;
       delete from housekeeping_steps; delete from inbox; delete from mails; delete from users;
       update wabas set token_refused_at = null`,
    );
    [tenant, otherTenant] = [await freshTenant(database), await freshTenant(database)];
    admin = await addUser(database, 'a@store.example', { ...tenant, role: 'admin' });
    stranger = await addUser(database, 'b@bazaar.example', { ...otherTenant, role: 'admin' });
    operator = await addUser(database, 'operator@example.com', 'operator');
    endpointId = (await addEndpoint(database, tenant.wabaId, 'https://shop.example/hook')).id;
  });
}
