import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { noteTokenRefused, noteTokenTaken } from '../../../src/accounts/access-tokens.ts';
import { keepAlerts } from '../../../src/alerts/alert-keeper.ts';
import { queueAlertMails } from '../../../src/alerts/alert-mails.ts';
import {
  type AlertViewer,
  allAlerts,
  countNewAlerts,
  followConditions,
  forgetOldAlerts,
  listAlerts,
  markAlertsRead,
  resolveAlert,
} from '../../../src/alerts/alerts.ts';
import { lookForConditions } from '../../../src/alerts/conditions.ts';
import { countFailed, tellFailing } from '../../../src/endpoints/endpoint-failures.ts';
import { disableEndpoint } from '../../../src/endpoints/endpoint-health.ts';
import { enableEndpoint, holdEndpoint } from '../../../src/endpoints/endpoint-modes.ts';
import { insertApiKey, revokeApiKey } from '../../../src/keys/api-key-store.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { addEndpoint, seedFixtureAccounts, testSecretBox } from '../../support/test-accounts.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { publish } from '../replays/replay-fixtures.ts';
import { addUser, OTHER_WABA, openAlerts, tenantOf, turn, WABA } from './alerts-fixtures.ts';

let store: TestDatabase;
let admin: AlertViewer;
let stranger: AlertViewer;
let operator: AlertViewer;
let endpointId: string;

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

const seen = (viewer = admin) => openAlerts(store.database, viewer);
const look = () => turn(store.database);

describe('an alert', () => {
  test('opens once while its condition lasts, is the tenant’s alone, and ends with it', async () => {
    const { database } = store;
    await execute(database, 'update webhook_endpoints set failing_since = now()');
    await database.transaction((trx) => tellFailing(trx, endpointId));
    await look();
    await look();
    expect(await seen()).toEqual([`endpoint_failing ${endpointId}`]);
    expect(await seen(stranger)).toEqual([]);
    expect(await seen(operator)).toEqual([`endpoint_failing ${endpointId}`]);
    expect(await countNewAlerts(database, admin)).toBe(1);
    expect(await countNewAlerts(database, stranger)).toBe(0);
    // Endpoints of tenants are no matter of operators.
    expect(await countNewAlerts(database, operator)).toBe(0);
    const all = { state: 'all', before: null, limit: 10 } as const;
    expect(await listAlerts(database, admin, all)).toMatchObject([{ isNew: true }]);
    expect(await listAlerts(database, operator, all)).toMatchObject([{ isNew: false }]);
    await enableEndpoint({ database, actor: SYSTEM }, WABA, { id: endpointId, waiting: 'send', by: 'x' });
    await look();
    expect(await seen()).toEqual([]);
    const [ended] = await listAlerts(database, admin, all);
    expect(ended).toMatchObject({ kind: 'endpoint_failing', resolvedBy: null, isNew: false });
    expect(ended?.resolvedAt).toBeInstanceOf(Date);
  });

  test('is opened, told and sent by e-mail once by workers that look at the same time', async () => {
    const { database } = store;
    const mailer = { secretBox: testSecretBox, publicUrl: 'https://gateway.example' };
    const workers = [1, 2, 3];
    const all = (work: () => Promise<unknown>) => Promise.all(workers.map(work));
    await execute(
      database,
      `update wabas set token_refused_at = now() - interval '1 hour', token_problem = 'Session has expired',
              operations_url = 'https://ops.example/alerts', operations_secret_sealed = 'x' where waba_id = ?`,
      [WABA],
    );
    const follow = async () =>
      await followConditions(database, await lookForConditions(database, new Date()));
    await all(follow);
    expect(await seen()).toEqual([`access_token_refused ${WABA}`]);
    await execute(database, `update alerts set told_at = told_at - interval '25 hours'`);
    await all(follow);
    await execute(database, `update alerts set told_at = told_at - interval '2 minutes'`);
    await all(() => queueAlertMails(database, mailer));
    const sent = await query(database, 'select recipient from mails order by recipient');
    expect(sent).toEqual([{ recipient: 'a@store.example' }, { recipient: 'operator@example.com' }]);
    await execute(database, 'update wabas set token_refused_at = null');
    await all(follow);
    expect(await query(database, 'select alert from alert_notices')).toHaveLength(3);
    // The step of housekeeping is taken by one of them in the first place.
    await database.raw('delete from alerts; update housekeeping_steps set next_at = now()');
    await execute(database, `insert into inbox (body, state) values ('{}', 'failed')`);
    const tools = { database, logger: silentLogger, mailer: null };
    await keepAlerts(tools, new Date());
    await execute(database, 'delete from inbox');
    await all(() => keepAlerts(tools, new Date()));
    expect(await seen(operator)).toEqual(['intake_failed ']);
  });

  test('is new to each user until that user has read it', async () => {
    const { database } = store;
    await noteTokenRefused(database, WABA, 'Session has expired');
    await execute(
      database,
      `update wabas set token_refused_at = now() - interval '1 hour' where waba_id = ?`,
      [WABA],
    );
    await look();
    expect(await countNewAlerts(database, admin)).toBe(1);
    expect(await countNewAlerts(database, operator)).toBe(1);
    // What is another tenant's cannot be marked.
    await markAlertsRead(database, stranger, null);
    await markAlertsRead(database, admin, null);
    expect(await countNewAlerts(database, admin)).toBe(0);
    expect(await countNewAlerts(database, operator)).toBe(1);
    const rows = await query(database, 'select user_id from alert_reads');
    expect(rows).toEqual([{ user_id: admin.userId }]);
  });

  test('that was resolved by hand does not come back before its condition was over', async () => {
    const { database } = store;
    await noteTokenRefused(database, WABA, 'Session has expired');
    await execute(
      database,
      `update wabas set token_refused_at = now() - interval '1 hour' where waba_id = ?`,
      [WABA],
    );
    await look();
    const [alert] = await allAlerts({ database }, { wabaId: WABA, state: 'open', limit: 5 });
    await resolveAlert({ database, actor: SYSTEM }, alert?.alertId ?? '');
    await expect(resolveAlert({ database, actor: SYSTEM }, alert?.alertId ?? '')).rejects.toThrow(
      /no open alert/,
    );
    await look();
    expect(await seen()).toEqual([]);
    await noteTokenTaken(database, WABA);
    await look();
    await noteTokenRefused(database, WABA, 'Session has expired');
    await execute(
      database,
      `update wabas set token_refused_at = now() - interval '1 hour' where waba_id = ?`,
      [WABA],
    );
    await look();
    expect(await seen()).toEqual([`access_token_refused ${WABA}`]);
    const log = await query(
      database,
      `select action, waba_id from audit_log where action = 'alert.resolved'`,
    );
    expect(log).toEqual([{ action: 'alert.resolved', waba_id: WABA }]);
  });

  test('about what happens again and again comes back when it happens anew', async () => {
    const { database } = store;
    await database.transaction((trx) => countFailed(trx, endpointId, 3));
    await execute(database, `update endpoint_failures set hour = hour - interval '3 hours'`);
    await look();
    const [alert] = await allAlerts({ database }, { wabaId: null, state: 'open', limit: 5 });
    expect(alert).toMatchObject({
      kind: 'deliveries_failed',
      reason: expect.stringMatching(/^3 deliveries/),
    });
    await resolveAlert({ database, actor: SYSTEM }, alert?.alertId ?? '');
    await look();
    expect(await seen()).toEqual([]);
    await execute(database, `update alerts set resolved_at = now() - interval '2 hours'`);
    await database.transaction((trx) => countFailed(trx, endpointId, 1));
    await look();
    expect(await seen()).toEqual([`deliveries_failed ${endpointId}`]);
    // To those who have read of it, it is new again with the next failure only.
    await markAlertsRead(database, admin, null);
    await look();
    expect(await countNewAlerts(database, admin)).toBe(0);
    await execute(database, `update alert_reads set read_at = now() - interval '2 hours'`);
    await look();
    expect(await countNewAlerts(database, admin)).toBe(1);
    await execute(database, `update endpoint_failures set hour = hour - interval '30 hours'`);
    await look();
    expect(await seen()).toEqual([]);
  });

  test('is forgotten long after its end', async () => {
    const { database } = store;
    await database.transaction((trx) => countFailed(trx, endpointId, 3));
    await look();
    await execute(database, `update endpoint_failures set hour = hour - interval '30 hours'`);
    await look();
    expect(await forgetOldAlerts(database, 10)).toBe(0);
    await execute(database, `update alerts set over_at = now() - interval '91 days'`);
    expect(await forgetOldAlerts(database, 10)).toBe(1);
  });
});

describe('conditions', () => {
  test('an endpoint that was disabled for its failures, not one that a user switched off', async () => {
    const { database } = store;
    const { id } = await addEndpoint(database, WABA, 'https://shop.example/other');
    await holdEndpoint({ database, actor: SYSTEM }, WABA, { id, mode: 'disabled', reason: 'not needed' });
    await database.transaction((trx) =>
      disableEndpoint(trx, endpointId, { version: null, reason: 'it answered 410' }),
    );
    await look();
    expect(await seen()).toEqual([`endpoint_disabled ${endpointId}`]);
    const change = { id: endpointId, mode: 'paused' as const, reason: 'known' };
    await holdEndpoint({ database, actor: SYSTEM }, WABA, change);
    await look();
    expect(await seen()).toEqual([]);
  });

  test('an endpoint that takes deliveries too slowly, and then all deliveries', async () => {
    const { database } = store;
    await publish(database, WABA, { count: 2, keys: 2 });
    await look();
    expect(await seen()).toEqual([]);
    await database.raw(`update delivery_queue set created_at = now() - interval '20 minutes';
       update webhook_endpoints set mode_changed_at = created_at - interval '1 hour'`);
    await look();
    expect(await seen()).toEqual([`endpoint_backlog ${endpointId}`]);
    expect(await seen(operator)).toEqual(['delivery_backlog ', `endpoint_backlog ${endpointId}`]);
    await execute(database, `update webhook_endpoints set mode = 'paused'`);
    await look();
    expect(await seen(operator)).toEqual([]);
  });

  test('an API key that expires within 14 days, or did, and was not replaced or revoked', async () => {
    const { database } = store;
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000);
    const key = (name: string, expiresAt: Date | null) =>
      insertApiKey(database, WABA, {
        ...{ name, expiresAt, prefix: 'hg', lastFour: 'abcd', keyHash: Buffer.from(name) },
      });
    const soon = await key('soon', inDays(13.9));
    await key('later', inDays(14.1));
    const over = await key('over', inDays(-1));
    await key('long over', inDays(-14.1));
    await key('for ever', null);
    const replaced = await key('replaced', inDays(1));
    await execute(
      database,
      `insert into api_key_requests (tenant_id, waba_id, requester_id, requester, purpose, scopes, replaces_key_id,
                                     state, decide_until)
       values (?, ?, '1', 'x', 'x', '{read}', ?, 'revealed', now())`,
      [await tenantOf(database, WABA), WABA, replaced],
    );
    await look();
    expect(await seen()).toEqual([`api_key_expiring ${soon}`, `api_key_expiring ${over}`].sort());
    expect(await seen(stranger)).toEqual([]);
    await execute(database, 'update api_keys set expires_at = now() where id = ?', [soon]);
    await look();
    expect(await seen()).toHaveLength(2);
    const [alert] = await query<{ reason: string }>(database, 'select reason from alerts where subject = ?', [
      soon,
    ]);
    expect(alert?.reason).toMatch(/^API key "soon" \(…abcd\) expired on /);
    await revokeApiKey(database, WABA, soon);
    await revokeApiKey(database, WABA, over);
    await look();
    expect(await seen()).toEqual([]);
    await execute(database, 'delete from api_key_requests');
  });

  test('a client certificate that expires within 14 days, or did', async () => {
    const { database } = store;
    const expire = async (inDays: number | null) => {
      const expiresAt = inDays === null ? null : new Date(Date.now() + inDays * 86_400_000);
      await execute(
        database,
        'update webhook_endpoints set client_certificate_expires_at = ? where waba_id = ?',
        [...[expiresAt, WABA]],
      );
      await look();
      return await seen();
    };
    const told = [expect.stringMatching(/^client_certificate_expiring \d+$/)];
    expect([await expire(14.1), await expire(13.9), await expire(-1), await expire(null)]).toEqual([
      ...[[], told, told, []],
    ]);
  });

  test('a refused access token, once the look at the numbers has had its turn', async () => {
    const { database } = store;
    await noteTokenRefused(database, WABA, 'Session has expired');
    await noteTokenRefused(database, WABA, 'said otherwise');
    // It has the numbers looked up, which shows whether it holds.
    expect(await query(database, 'select workflow_type from workflow_tasks')).toEqual([
      { workflow_type: 'refreshNumbers' },
    ]);
    await look();
    expect(await seen()).toEqual([]);
    await execute(
      database,
      `update wabas set token_refused_at = now() - interval '3 minutes' where waba_id = ?`,
      [WABA],
    );
    await look();
    expect(await seen()).toEqual([`access_token_refused ${WABA}`]);
    const [alert] = await allAlerts({ database }, { wabaId: WABA, state: 'open', limit: 5 });
    expect(alert?.reason).toMatch(/Session has expired$/);
    await noteTokenTaken(database, WABA);
    await look();
    expect(await seen()).toEqual([]);
  });

  test('payloads in quarantine, of our WABAs and of others; not what is only counted', async () => {
    const { database } = store;
    const count = (reason: string, wabaId: string, daysAgo = 0) =>
      execute(
        database,
        `insert into quarantine_counts (day, reason, field, waba_id, count)
         values ((now() at time zone 'utc')::date - cast(? as integer), ?, 'messages', ?, 2)`,
        [daysAgo, reason, wabaId],
      );
    await count('missing_id', WABA);
    await count('unknown_field', OTHER_WABA);
    await count('missing_id', OTHER_WABA, 2);
    await count('unknown_waba', '123');
    await look();
    expect(await seen()).toEqual([`payloads_quarantined ${WABA}`]);
    expect(await seen(stranger)).toEqual([]);
    expect(await seen(operator)).toEqual(['payloads_quarantined 123', `payloads_quarantined ${WABA}`]);
  });

  test('bodies that wait for intake, and those that failed there', async () => {
    const { database } = store;
    await execute(
      database,
      `insert into inbox (body, state, received_at) values ('{}', 'new', now() - interval '6 minutes'), ('{}', 'failed', now())`,
    );
    await look();
    expect(await seen(operator)).toEqual(['intake_backlog ', 'intake_failed ']);
    expect(await countNewAlerts(database, operator)).toBe(2);
    expect(await seen()).toEqual([]);
  });
});

describe('at the operations URL', () => {
  const told = async () =>
    (
      await query<{ body: Buffer }>(store.database, 'select body from alert_notices order by created_at, id')
    ).map(({ body }) => JSON.parse(body.toString()));

  beforeEach(async () => {
    await execute(
      store.database,
      `update wabas set operations_url = 'https://ops.example/alerts', operations_secret_sealed = 'x' where waba_id = ?`,
      [WABA],
    );
  });

  test('a new kind is told when it opens, daily while it lasts, and at its end', async () => {
    const { database } = store;
    await noteTokenRefused(database, WABA, 'Session has expired');
    await execute(
      database,
      `update wabas set token_refused_at = now() - interval '3 minutes' where waba_id = ?`,
      [WABA],
    );
    await look();
    await look();
    await execute(database, `update alerts set told_at = told_at - interval '25 hours'`);
    await look();
    await look();
    await noteTokenTaken(database, WABA);
    await look();
    const bodies = await told();
    expect(bodies.map(({ alert, state }) => [alert, state])).toEqual([
      ['access_token.refused', 'opened'],
      ['access_token.refused', 'lasting'],
      ['access_token.refused', 'resolved'],
    ]);
    expect(bodies[0]).toEqual({
      alertId: expect.stringMatching(/^alr_[0-9a-f]{32}$/),
      alert: 'access_token.refused',
      state: 'opened',
      occurredAt: expect.any(String),
      userId: Number(await tenantOf(database, WABA)),
      wabaId: WABA,
      reason: `The access token of WABA ${WABA} is refused: Session has expired`,
      details: { since: expect.any(String) },
    });
    expect(
      await query(database, `select 1 from workflow_tasks where workflow_type = 'sendEndpointAlert'`),
    ).toHaveLength(3);
  });

  test('a failing endpoint is told once by the change of its mode, and then daily', async () => {
    const { database } = store;
    await execute(database, 'update webhook_endpoints set failing_since = now()');
    await database.transaction((trx) => tellFailing(trx, endpointId));
    await look();
    expect((await told()).map(({ alert, state }) => [alert, state])).toEqual([
      ['endpoint.failing', undefined],
    ]);
    await execute(database, `update alerts set told_at = told_at - interval '25 hours'`);
    await look();
    const bodies = await told();
    expect(bodies.map(({ alert, state }) => [alert, state])).toEqual([
      ['endpoint.failing', undefined],
      ['endpoint.failing', 'lasting'],
    ]);
    expect(bodies[1].endpoint).toMatchObject({ id: endpointId, url: 'https://shop.example/hook' });
  });
});
