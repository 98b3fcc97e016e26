import { beforeEach, describe, expect, test } from 'vitest';
import { noteQuietChanges } from '../../../src/engine/endpoint/endpoint-changes.ts';
import { countFailed, countRecentlyFailed } from '../../../src/engine/endpoint/endpoint-failures.ts';
import { endProbing, noteWorking, startProbing } from '../../../src/engine/endpoint/endpoint-health.ts';
import { noteTokenTaken } from '../../../src/features/accounts/access-tokens.ts';
import { enableEndpoint, holdEndpoint } from '../../../src/features/endpoints/endpoint-modes.ts';
import { keepAlerts } from '../../../src/ops/alerts/alert-keeper.ts';
import { allAlerts, resolveAlert } from '../../../src/ops/alerts/alerts.ts';
import { readOperationEvents } from '../../../src/ops/feed/operation-events.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { shownUrl } from '../../../src/platform/http/outbound-url.ts';
import type { Transaction } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import {
  endpointId,
  failQuietly,
  look,
  refuseToken,
  seen,
  store,
  tenant,
  useAlertStore,
} from './alert-store.ts';

useAlertStore();

describe('at the operations URL', () => {
  const told = async () =>
    (
      await query<{ body: Buffer }>(store.database, 'select body from alert_notices order by created_at, id')
    ).map(({ body }) => JSON.parse(body.toString()));

  beforeEach(async () => {
    await execute(
      store.database,
      `update wabas set operations_url = 'https://ops.example/alerts', operations_secret_sealed = 'x' where waba_id = :wabaId`,
      { wabaId: tenant.wabaId },
    );
  });

  test('a new kind is told when it opens, daily while it lasts, and at its end, as the feed has it', async () => {
    const { database } = store;
    await refuseToken('3 minutes');
    await look();
    await look();
    await execute(database, `update alerts set told_at = told_at - interval '25 hours'`);
    await look();
    await look();
    await noteTokenTaken(database, tenant.wabaId);
    await look();
    const bodies = await told();
    expect(bodies.map(({ alert, state }) => [alert, state])).toEqual([
      ['access_token.refused', 'opened'],
      ['access_token.refused', 'lasting'],
      ['access_token.refused', 'resolved'],
    ]);
    const behind = { types: ['alert.*'], tenantId: tenant.tenantId, after: '0', limit: 10 };
    const { events } = await readOperationEvents(database, behind);
    expect(events.map(({ type, wabaId, data }) => [type, wabaId, data.kind])).toEqual([
      ['alert.opened', tenant.wabaId, 'access_token_refused'],
      ['alert.resolved', tenant.wabaId, 'access_token_refused'],
    ]);
    expect(bodies[0]).toEqual({
      alertId: expect.stringMatching(/^alr_[0-9a-f]{32}$/),
      alert: 'access_token.refused',
      state: 'opened',
      occurredAt: expect.any(String),
      userId: Number(tenant.tenantId),
      wabaId: tenant.wabaId,
      reason: `The access token of WABA ${tenant.wabaId} is refused: Session has expired`,
      details: { since: expect.any(String) },
    });
    expect(await query(database, 'select 1 from alert_notices where given_up_at is null')).toHaveLength(3);
  });

  const names = async () => (await told()).map(({ alert, state }) => [alert, state]);
  const probe = { probeAfterMs: 1_000, reason: 'most attempts fail: 9 of the last 10' };
  const change = (work: (trx: Transaction) => Promise<unknown>) =>
    store.database.transaction(async (trx) => void (await work(trx)));

  test('a failing endpoint is told once by its change, and then daily', async () => {
    const { database } = store;
    await failQuietly();
    await look();
    expect(await names()).toEqual([['endpoint.failing', undefined]]);
    await execute(database, `update alerts set told_at = told_at - interval '25 hours'`);
    await look();
    const bodies = await told();
    expect(await names()).toEqual([
      ['endpoint.failing', undefined],
      ['endpoint.failing', 'lasting'],
    ]);
    expect(bodies[1].endpoint).toMatchObject({ id: endpointId, url: shownUrl('https://shop.example/hook') });
  });

  test('an endpoint that fails and recovers between two looks has done both, each as it was then', async () => {
    const { database } = store;
    const before = new Date();
    await change((trx) => startProbing(trx, endpointId, probe));
    await change((trx) => endProbing(trx, endpointId));
    const changedBy = Date.now();
    expect(await told()).toEqual([]);
    await look();
    const bodies = await told();
    expect(bodies).toMatchObject([
      {
        alert: 'endpoint.failing',
        reason: probe.reason,
        endpoint: { mode: 'probing', modeReason: probe.reason },
      },
      {
        alert: 'endpoint.recovered',
        reason: 'a probe succeeded',
        endpoint: { mode: 'open', modeReason: null },
      },
    ]);
    for (const { occurredAt } of bodies) {
      expect(Date.parse(occurredAt)).toBeGreaterThanOrEqual(before.getTime() - 1_000);
      expect(Date.parse(occurredAt)).toBeLessThanOrEqual(changedBy + 1_000);
    }
    expect(await seen()).toEqual([]);
    await look();
    expect(await told()).toHaveLength(2);
    expect(await query(database, 'select 1 from endpoint_changes')).toEqual([]);
  });

  test('a change that is undone is no change', async () => {
    const undone = store.database.transaction(async (trx) => {
      expect(await startProbing(trx, endpointId, probe)).toBe(true);
      throw new Error('undone');
    });
    await expect(undone).rejects.toThrow('undone');
    await look();
    expect(await told()).toEqual([]);
  });

  test('an alert that was resolved by hand changes nothing of what endpoints do', async () => {
    const { database } = store;
    await failQuietly();
    await look();
    const [alert] = await allAlerts({ database }, { wabaId: tenant.wabaId, state: 'open', limit: 5 });
    await resolveAlert({ database, actor: SYSTEM }, alert?.alertId ?? '');
    await change((trx) => noteWorking(trx, new Map([[endpointId, true]])));
    expect(await noteQuietChanges(database, 'recovered')).toEqual([endpointId]);
    await look();
    expect((await told()).map(({ alert: name, reason }) => [name, reason])).toEqual([
      ['endpoint.failing', 'every attempt fails; deliveries are tried again by the retry schedule'],
      ['endpoint.recovered', 'an attempt succeeded'],
    ]);
  });

  test('what a user switches is told to nobody', async () => {
    const { database } = store;
    const tools = { database, actor: SYSTEM };
    await change((trx) => startProbing(trx, endpointId, probe));
    const reason = 'known';
    await holdEndpoint(tools, tenant.wabaId, { id: endpointId, mode: 'disabled', reason });
    await enableEndpoint(tools, tenant.wabaId, { id: endpointId, waiting: 'send', by: 'x' });
    expect(await noteQuietChanges(database, 'recovered')).toEqual([]);
    await look();
    expect(await names()).toEqual([['endpoint.failing', undefined]]);
  });

  test('a flood of failures for good is one alert an hour, whatever the number of processes', async () => {
    const { database } = store;
    const tools = { database, logger: silentLogger, mailer: null };
    const fail = async (count: number) => {
      await change((trx) => countFailed(trx, new Map([[endpointId, count]])));
      await execute(database, 'update housekeeping_steps set next_at = now()');
      await Promise.all([1, 2, 3].map(() => keepAlerts(tools, new Date())));
    };
    await fail(1);
    await fail(5_000);
    expect(await told()).toHaveLength(1);
    await execute(database, `update alert_notices set created_at = created_at - interval '61 minutes'`);
    await fail(10);
    expect((await told()).map(({ alert, reason, details }) => [alert, reason, details.failed])).toEqual([
      ['endpoint.deliveries_failed', '1 delivery has failed permanently: no more attempts are made', 1],
      [
        'endpoint.deliveries_failed',
        '5,010 deliveries have failed permanently: no more attempts are made',
        5_010,
      ],
    ]);
    expect(await countRecentlyFailed(database, tenant.wabaId)).toEqual(new Map([[endpointId, 5_011]]));
  });
});
