import { beforeEach, describe, expect, test } from 'vitest';
import { tellFailing } from '../../../src/engine/endpoint/endpoint-failures.ts';
import { noteTokenTaken } from '../../../src/features/accounts/access-tokens.ts';
import { shownUrl } from '../../../src/platform/http/outbound-url.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { endpointId, look, refuseToken, store, tenant, useAlertStore } from './alert-store.ts';

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

  test('a new kind is told when it opens, daily while it lasts, and at its end', async () => {
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
    expect(bodies[1].endpoint).toMatchObject({ id: endpointId, url: shownUrl('https://shop.example/hook') });
  });
});
