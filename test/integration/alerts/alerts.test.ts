import { describe, expect, test } from 'vitest';
import { countFailed } from '../../../src/engine/endpoint/endpoint-failures.ts';
import { noteTokenTaken } from '../../../src/features/accounts/access-tokens.ts';
import { enableEndpoint } from '../../../src/features/endpoints/endpoint-modes.ts';
import { keepAlerts } from '../../../src/ops/alerts/alert-keeper.ts';
import { queueAlertMails } from '../../../src/ops/alerts/alert-mails.ts';
import {
  allAlerts,
  countNewAlerts,
  followConditions,
  forgetOldAlerts,
  listAlerts,
  markAlertsRead,
  resolveAlert,
} from '../../../src/ops/alerts/alerts.ts';
import { lookForConditions } from '../../../src/ops/alerts/conditions.ts';
import { readOperationEvents } from '../../../src/ops/feed/operation-events.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import {
  admin,
  endpointId,
  failQuietly,
  look,
  operator,
  refuseToken,
  seen,
  store,
  stranger,
  tenant,
  useAlertStore,
} from './alert-store.ts';

useAlertStore();

describe('an alert', () => {
  test('opens once while its condition lasts, is the tenant’s alone, and ends with it', async () => {
    const { database } = store;
    await failQuietly();
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
    await enableEndpoint({ database, actor: SYSTEM }, tenant.wabaId, {
      id: endpointId,
      waiting: 'send',
      by: 'x',
    });
    await look();
    expect(await seen()).toEqual([]);
    const [ended] = await listAlerts(database, admin, all);
    expect(ended).toMatchObject({ kind: 'endpoint_failing', resolvedBy: null, isNew: false });
    expect(ended?.resolvedAt).toBeInstanceOf(Date);
  });

  test('that opens and ends is in the feed of operation events once, without an address', async () => {
    const { database } = store;
    const [last] = await query<{ position: string }>(
      database,
      'select coalesce(max(position), 0)::text as position from audit_chain',
    );
    await refuseToken('1 hour');
    await execute(
      database,
      `insert into mails (id, kind, recipient, failed_at, last_error, created_at)
       values (gen_random_uuid(), 'alerts', 'asha@store.example', now(), 'refused', now())`,
    );
    await look();
    await look();
    await noteTokenTaken(database, tenant.wabaId);
    await look();
    const behind = { types: ['alert.*'], tenantId: null, after: last?.position ?? '0', limit: 100 };
    const { events } = await readOperationEvents(database, behind);
    const { tenantId, wabaId } = tenant;
    const ofToken = { actor: 'system', wabaId, tenant: { userId: Number(tenantId) } };
    const data = { kind: 'access_token_refused', subject: wabaId, alertId: expect.stringMatching(/^alr_/) };
    expect(events).toHaveLength(3);
    expect(events).toMatchObject([
      { type: 'alert.opened', ...ofToken, data },
      { type: 'alert.opened', tenant: null, wabaId: null, data: { kind: 'mail_failed' } },
      { type: 'alert.resolved', ...ofToken, data },
    ]);
    expect(JSON.stringify(events)).not.toContain('@');
  });

  test('is opened, told and sent by e-mail once by workers that look at the same time', async () => {
    const { database } = store;
    const mailer = { secretBox: testSecretBox, publicUrl: 'https://gateway.example' };
    const workers = [1, 2, 3];
    const all = (work: () => Promise<unknown>) => Promise.all(workers.map(work));
    await execute(
      database,
      `update wabas set token_refused_at = now() - interval '1 hour', token_problem = 'Session has expired',
              operations_url = 'https://ops.example/alerts', operations_secret_sealed = 'x' where waba_id = :wabaId`,
      { wabaId: tenant.wabaId },
    );
    const follow = async () =>
      await followConditions(database, await lookForConditions(database, new Date()));
    await all(follow);
    expect(await seen()).toEqual([`access_token_refused ${tenant.wabaId}`]);
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

  test('of hundreds, a few at a time are opened and ended, so that other changes get their place between', async () => {
    const { database } = store;
    const { tenantId, wabaId } = tenant;
    const conditions = Array.from({ length: 450 }, (_, n) => {
      const what = { kind: 'endpoint_failing' as const, subject: String(900_000 + n), latestAt: null };
      return { ...what, tenantId, wabaId, reason: 'It fails.', details: {} };
    });
    const follow = async (found: typeof conditions) =>
      await followConditions(database, [{ kind: 'endpoint_failing', conditions: found, isWhole: true }]);
    expect(await follow(conditions)).toEqual({ opened: 450, ended: 0 });
    expect(await follow(conditions)).toEqual({ opened: 0, ended: 0 });
    expect(await follow([])).toEqual({ opened: 0, ended: 450 });
    const commits = await query<{ action: string; n: number }>(
      database,
      `select action, count(*)::integer as n from audit_log where tenant_id = :tenantId and action like 'alert.%'
        group by action, xmin order by action, n`,
      { tenantId },
    );
    const numbers = (of: string) => commits.filter(({ action }) => action === of).map(({ n }) => n);
    expect([numbers('alert.opened'), numbers('alert.resolved')]).toEqual([
      [50, 200, 200],
      [50, 200, 200],
    ]);
  });

  test('is new to each user until that user has read it', async () => {
    const { database } = store;
    await refuseToken('1 hour');
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
    await refuseToken('1 hour');
    await look();
    const [alert] = await allAlerts({ database }, { wabaId: tenant.wabaId, state: 'open', limit: 5 });
    await resolveAlert({ database, actor: SYSTEM }, alert?.alertId ?? '');
    await expect(resolveAlert({ database, actor: SYSTEM }, alert?.alertId ?? '')).rejects.toThrow(
      /no open alert/,
    );
    await look();
    expect(await seen()).toEqual([]);
    await noteTokenTaken(database, tenant.wabaId);
    await look();
    await refuseToken('1 hour');
    await look();
    expect(await seen()).toEqual([`access_token_refused ${tenant.wabaId}`]);
    const log = await query(
      database,
      `select action, waba_id from audit_log where action = 'alert.resolved' and waba_id = :wabaId`,
      { wabaId: tenant.wabaId },
    );
    expect(log).toEqual([{ action: 'alert.resolved', waba_id: tenant.wabaId }]);
  });

  test('about what happens again and again comes back when it happens anew', async () => {
    const { database } = store;
    await database.transaction((trx) => countFailed(trx, new Map([[endpointId, 3]])));
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
    await database.transaction((trx) => countFailed(trx, new Map([[endpointId, 1]])));
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
    await database.transaction((trx) => countFailed(trx, new Map([[endpointId, 3]])));
    await look();
    await execute(database, `update endpoint_failures set hour = hour - interval '30 hours'`);
    await look();
    expect(await forgetOldAlerts(database, 10)).toBe(0);
    await execute(database, `update alerts set over_at = now() - interval '91 days'`);
    expect(await forgetOldAlerts(database, 10)).toBe(1);
  });
});
