import { describe, expect, test } from 'vitest';
import { setOperationsUrl } from '../../../src/alerts/operations-url.ts';
import { deleteEndpoint, enableEndpoint, holdEndpoint } from '../../../src/endpoints/endpoint-modes.ts';
import { rotateSecret } from '../../../src/endpoints/endpoint-secrets.ts';
import { endpointsOfWabas } from '../../../src/endpoints/endpoint-settings.ts';
import { addEndpoint, endpointStatus, updateEndpoint } from '../../../src/endpoints/endpoints.ts';
import { endpointHeadersPlace, endpointSecretPlace } from '../../../src/endpoints/sealed-columns.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { newQueuedRow, queueRows } from '../../support/queued-rows.ts';
import { seedFixtureAccounts, testSecretBox } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';

const WABA = '900000000000101';
const OTHER_WABA = '900000000000202';
const URL = 'https://shop.example/hook';

async function startAccounts() {
  const { database } = await testDatabase();
  await seedFixtureAccounts(database);
  const urlRules = {
    allowHttp: false,
    guard: makeAddressGuard({ allowCidrs: [] }),
    resolve: async () => ['93.184.215.14'],
  };
  const tools = { database, secretBox: testSecretBox, urlRules, maxTimeoutMs: 15_000, actor: SYSTEM };
  const endpoint = await addEndpoint(tools, WABA, { url: URL });
  return { database, tools, id: endpoint.id, secret: endpoint.secret };
}

async function secretsOf(database: Database, id: string): Promise<(string | null)[]> {
  const [row] = await query<{ now: string; before: string | null }>(
    database,
    'select secret_sealed as now, previous_secret_sealed as before from webhook_endpoints where id = ?',
    [id],
  );
  const place = endpointSecretPlace(id);
  return [row?.now ?? null, row?.before ?? null].map((sealed) =>
    sealed === null ? null : testSecretBox.open(sealed, place),
  );
}

async function headersOf(database: Database, id: string): Promise<Record<string, string>> {
  const [row] = await query<{ sealed: string }>(
    database,
    'select custom_headers_sealed as sealed from webhook_endpoints where id = ?',
    [id],
  );
  return JSON.parse(testSecretBox.open(row?.sealed ?? '', endpointHeadersPlace(id)));
}

async function lastAudited(database: Database): Promise<object | undefined> {
  const [row] = await query<{ detail: object }>(
    database,
    'select detail from audit_log order by id desc limit 1',
    [],
  );
  return row?.detail;
}

describe('endpoints of accounts', () => {
  test("another WABA's endpoint answers exactly as one that does not exist", async () => {
    const { database, tools, id } = await startAccounts();
    const before = await query(database, 'select e::text as row from webhook_endpoints e');
    const calls = [
      (to: string) => endpointStatus(tools, OTHER_WABA, to),
      (to: string) => updateEndpoint(tools, OTHER_WABA, to, { description: 'mine' }),
      (to: string) => holdEndpoint(tools, OTHER_WABA, { id: to, mode: 'paused', reason: '' }),
      (to: string) => enableEndpoint(tools, OTHER_WABA, { id: to, waiting: 'drop', by: 'a test' }),
      (to: string) => rotateSecret(tools, OTHER_WABA, to, {}),
      (to: string) => deleteEndpoint(tools, OTHER_WABA, to),
    ];
    for (const call of calls) {
      for (const to of [id, '4242']) {
        const refusal = { code: 'unknown_endpoint', message: `There is no webhook endpoint ${to}.` };
        await expect(call(to)).rejects.toMatchObject(refusal);
      }
    }
    expect(await query(database, 'select e::text as row from webhook_endpoints e')).toEqual(before);
  });

  test('an order scope takes effect at once where nothing is open', async () => {
    const { tools, id } = await startAccounts();
    const changed = await updateEndpoint(tools, WABA, id, { orderScope: 'endpoint' });
    expect(changed).toMatchObject({ orderScope: 'endpoint', wantedOrderScope: null });
  });

  test('an order scope is wanted until it takes effect, and the present one ends the wish', async () => {
    const { database, tools, id } = await startAccounts();
    await queueRows(database, [newQueuedRow(id, 'a')]);
    const update = (orderScope: string | null) => updateEndpoint(tools, WABA, id, { orderScope });
    expect(await update('endpoint')).toMatchObject({ orderScope: 'event', wantedOrderScope: 'endpoint' });
    expect(await updateEndpoint(tools, WABA, id, { description: 'x' })).toMatchObject({
      orderScope: 'event',
      wantedOrderScope: 'endpoint',
    });
    expect(await update('conversation')).toMatchObject({ wantedOrderScope: 'conversation' });
    expect(await update(null)).toMatchObject({ orderScope: 'event', wantedOrderScope: null });
  });

  test('publishers see the filters and the scope in effect', async () => {
    const { database, tools, id } = await startAccounts();
    const phoneNumberIds = ['800000000000112'];
    await queueRows(database, [newQueuedRow(id, 'a')]);
    await updateEndpoint(tools, WABA, id, { phoneNumberIds, eventTypes: ['status'], orderScope: 'endpoint' });
    expect(await endpointsOfWabas(database, [WABA])).toMatchObject([
      { id, wabaId: WABA, eventTypes: ['status'], phoneNumberIds, orderScope: 'event' },
    ]);
    for (const foreign of ['800000000000221', '1', '\0']) {
      const change = updateEndpoint(tools, WABA, id, { phoneNumberIds: [foreign] });
      await expect(change).rejects.toMatchObject({ code: 'unknown_phone_number' });
    }
  });

  test('a change of mode says since when, and forgets what the breaker noted', async () => {
    const { database, tools, id } = await startAccounts();
    const trouble = `mode = 'probing', mode_reason = 'fails', mode_changed_at = now() - interval '2 hours',
      failing_since = now() - interval '2 hours', next_probe_at = now(), probe_failures = 9`;
    const fail = () => execute(database, `update webhook_endpoints set ${trouble}`);
    await fail();
    const failing = await endpointStatus(tools, WABA, id);
    expect(failing).toMatchObject({ mode: 'probing', probeFailures: 9, nextProbeAt: expect.any(Date) });
    await holdEndpoint(tools, WABA, { id, mode: 'paused', reason: ' \t' });
    const paused = await endpointStatus(tools, WABA, id);
    expect(paused).toMatchObject({ mode: 'paused', modeReason: null, probeFailures: 0, nextProbeAt: null });
    expect(paused.failingSince).toEqual(failing.failingSince);
    expect(paused.modeChangedAt.getTime()).toBeGreaterThan(failing.modeChangedAt.getTime());
    await holdEndpoint(tools, WABA, { id, mode: 'paused', reason: 'still' });
    expect((await endpointStatus(tools, WABA, id)).modeChangedAt).toEqual(paused.modeChangedAt);
    await enableEndpoint(tools, WABA, { id, waiting: null, by: 'a test' });
    const open = { mode: 'open', modeReason: null, failingSince: null, nextProbeAt: null };
    expect(await endpointStatus(tools, WABA, id)).toMatchObject(open);
  });

  test('a rotation keeps one secret before the present one, and only for its overlap', async () => {
    const { database, tools, id, secret } = await startAccounts();
    const second = await rotateSecret(tools, WABA, id, {});
    expect(await secretsOf(database, id)).toEqual([second.secret, secret]);
    const third = await rotateSecret(tools, WABA, id, { overlapHours: 1 });
    expect(await secretsOf(database, id)).toEqual([third.secret, second.secret]);
    const again = rotateSecret(tools, WABA, id, { secret: third.secret });
    await expect(again).rejects.toMatchObject({ code: 'secret_in_use' });
    expect(await secretsOf(database, id)).toEqual([third.secret, second.secret]);
    const { previousSecretExpiresAt } = await endpointStatus(tools, WABA, id);
    expect(previousSecretExpiresAt).toEqual(third.previousSecretExpiresAt);
    for (const overlapHours of [-1, 169, Number.NaN]) {
      await expect(rotateSecret(tools, WABA, id, { overlapHours })).rejects.toMatchObject({
        code: 'invalid_value',
      });
    }
    const last = await rotateSecret(tools, WABA, id, { overlapHours: 0 });
    expect(await secretsOf(database, id)).toEqual([last.secret, null]);
  });

  test.each([
    ['another host', 'https://other.example/hook'],
    ['another port', 'https://shop.example:8443/hook'],
    ['another scheme', 'http://shop.example/hook'],
  ])('a change of the URL to %s takes no stored header value along', async (_, url) => {
    const { database, tools, id } = await startAccounts();
    const rules = { ...tools, urlRules: { ...tools.urlRules, allowHttp: true } };
    const customHeaders = { Authorization: 'Bearer s3cret', 'X-Shop': '1' };
    await updateEndpoint(rules, WABA, id, { customHeaders });
    const path = await updateEndpoint(rules, WABA, id, { url: `${URL}/v2` });
    expect(path).toMatchObject({ customHeaderNames: ['Authorization', 'X-Shop'], droppedHeaderNames: [] });
    expect(path.secretRotationAdvised).toBe(false);

    const moved = await updateEndpoint(rules, WABA, id, { url, customHeaders: { 'x-shop': '2' } });
    expect(moved).toMatchObject({ customHeaderNames: ['x-shop'], droppedHeaderNames: ['Authorization'] });
    expect(moved.secretRotationAdvised).toBe(true);
    expect(await headersOf(database, id)).toEqual({ 'x-shop': '2' });
    const back = await updateEndpoint(rules, WABA, id, { url: URL });
    expect(back).toMatchObject({ customHeaderNames: [], droppedHeaderNames: ['x-shop'] });
    expect(await lastAudited(database)).toMatchObject({
      ...{ host: 'shop.example', previousHost: new globalThis.URL(url).host, droppedHeaders: 'x-shop' },
    });
  });

  test('new and changed URLs use the ports of the installation, stored ones stay as they are', async () => {
    const { tools, id } = await startAccounts();
    const strict = { ...tools, urlRules: { ...tools.urlRules, ports: [443, 8443] } };
    const refused = { code: 'port_not_allowed', param: 'url' };
    const url = 'https://shop.example:9443/hook';
    await expect(addEndpoint(strict, WABA, { url })).rejects.toMatchObject(refused);
    await expect(updateEndpoint(strict, WABA, id, { url })).rejects.toMatchObject(refused);
    await expect(setOperationsUrl(strict, WABA, url)).rejects.toMatchObject({ code: 'port_not_allowed' });
    await updateEndpoint(tools, WABA, id, { url });
    await setOperationsUrl(tools, WABA, `${url}/alerts`);
    expect(await updateEndpoint(strict, WABA, id, { url, timeoutMs: 2_000 })).toMatchObject({ url });
    expect(await setOperationsUrl(strict, WABA, `${url}/alerts`)).toMatchObject({ url: `${url}/alerts` });
    const moved = updateEndpoint(strict, WABA, id, { url: `${url}/2` });
    await expect(moved).rejects.toMatchObject(refused);
  });

  test('tenants may ask for the addresses of 30 names per minute and WABA', async () => {
    const { tools, id } = await startAccounts();
    const limited = { ...tools, urlRules: { ...tools.urlRules, lookupsPerMinute: 30 } };
    const ask = (n: number) => updateEndpoint(limited, WABA, id, { url: `https://h${n}.example/` });
    for (let asked = 0; asked < 29; asked += 1) await ask(asked);
    await setOperationsUrl(limited, WABA, 'https://ops.example/');
    const refused = {
      name: 'RateLimitError',
      code: 'rate_limit_exceeded',
      retryAfterSeconds: expect.any(Number),
    };
    await expect(ask(30)).rejects.toMatchObject(refused);
    await expect(setOperationsUrl(limited, WABA, 'https://ops.example/2')).rejects.toMatchObject(refused);
    await updateEndpoint(limited, WABA, id, { url: 'https://8.8.8.8/' });
    await addEndpoint(limited, OTHER_WABA, { url: URL });
    await updateEndpoint(tools, WABA, id, { url: URL });
  });

  test('headers stored under a key that is gone are said to be so, and can be replaced as a whole', async () => {
    const { database, tools, id } = await startAccounts();
    await updateEndpoint(tools, WABA, id, { customHeaders: { 'X-Shop': '1' } });
    await execute(
      database,
      `update webhook_endpoints set custom_headers_sealed = replace(custom_headers_sealed, 'v1:test', 'v1:lost')`,
    );
    expect(await endpointStatus(tools, WABA, id)).toMatchObject({ customHeaderNames: null });
    await updateEndpoint(tools, WABA, id, { customHeaders: null });
    expect(await endpointStatus(tools, WABA, id)).toMatchObject({ customHeaderNames: [] });
  });

  test('what a publisher queues while the endpoint is deleted does not stay behind', async () => {
    const { database, tools, id } = await startAccounts();
    let commit = () => {};
    const mayCommit = new Promise<void>((resolve) => {
      commit = resolve;
    });
    const row = newQueuedRow(id, 'late');
    const publisher = database.transaction(async (trx) => {
      // Its transaction has begun, as a publisher's that has read the endpoints.
      await query(trx, 'select pg_current_xact_id()');
      await mayCommit;
      await queueRows({ transaction: async (run: (inner: unknown) => unknown) => run(trx) } as never, [row]);
    });
    const deletion = deleteEndpoint(tools, WABA, id);
    while ((await query(database, 'select 1 from webhook_endpoints')).length > 0)
      await new Promise(setImmediate);
    commit();
    await publisher;
    expect(await deletion).toEqual({ id, dropped: 1 });
    expect(await query(database, 'select 1 from delivery_queue')).toEqual([]);
  });

  test('counting stops at 100,000 and still tells the oldest', async () => {
    const { database, tools, id } = await startAccounts();
    await execute(
      database,
      `insert into delivery_queue (endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid,
                                   created_at)
       select ?, n / 2, case n % 2 when 0 then 'due' else 'queued' end, true, current_date, gen_random_uuid(),
              current_date, gen_random_uuid(), now() - case n when 0 then interval '1 hour' else interval '0' end
         from generate_series(0, 150000) as n`,
      [id],
    );
    const { waiting } = await endpointStatus(tools, WABA, id);
    expect(waiting).toMatchObject({ count: 100_000, more: true, held: 0, retrying: 0, claimed: 0 });
    expect(waiting.due + waiting.queued).toBeGreaterThan(100_000);
    expect(waiting.oldestMs).toBeGreaterThan(3_600_000 - 1_000);
  });
});
