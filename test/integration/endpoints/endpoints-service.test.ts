import { beforeEach, describe, expect, test } from 'vitest';
import { ENDPOINT_HEADERS, ENDPOINT_SECRET } from '../../../src/engine/endpoint/endpoint-secrets.ts';
import {
  endpointsOfWabas,
  findChangedEndpoints,
  loadEndpointSettings,
} from '../../../src/engine/endpoint/endpoint-settings.ts';
import { findLatelyDue } from '../../../src/engine/queue/claim.ts';
import {
  deleteEndpoint,
  enableEndpoint,
  holdEndpoint,
} from '../../../src/features/endpoints/endpoint-modes.ts';
import { rotateSecret } from '../../../src/features/endpoints/endpoint-secrets.ts';
import { addEndpoint, endpointStatus, updateEndpoint } from '../../../src/features/endpoints/endpoints.ts';
import { setOperationsUrl } from '../../../src/ops/alerts/operations-url.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query, queryOne } from '../../../src/platform/postgres/sql.ts';
import { newQueuedRow, queueRows } from '../../support/queued-rows.ts';
import { type FreshTenant, freshTenant, testSecretBox } from '../../support/test-accounts.ts';
import { databaseOfFile } from '../../support/test-database.ts';

const URL = 'https://shop.example/hook';

const store = databaseOfFile();
const urlRules = {
  allowHttp: false,
  guard: makeAddressGuard({ allowCidrs: [] }),
  resolve: async () => ['93.184.215.14'],
};
let database: Database;
let tools: Parameters<typeof addEndpoint>[0];
let tenant: FreshTenant;
let waba: string;
let id: string;
let secret: string;

beforeEach(async () => {
  ({ database } = store);
  tools = { database, secretBox: testSecretBox, urlRules, maxTimeoutMs: 15_000, actor: SYSTEM };
  tenant = await freshTenant(database);
  waba = tenant.wabaId;
  ({ id, secret } = await addEndpoint(tools, waba, { url: URL }));
});

const update = (change: object, by = tools) => updateEndpoint(by, waba, id, change);

const queuedRow = (lane: string) => newQueuedRow(id, lane, true, waba);

const status = () => endpointStatus(tools, waba, id);

async function secretsOf(): Promise<(string | null)[]> {
  const [row] = await query<{ now: string; before: string | null }>(
    database,
    'select secret_sealed as now, previous_secret_sealed as before from webhook_endpoints where id = :id',
    { id },
  );
  const place = ENDPOINT_SECRET.place(id);
  return [row?.now ?? null, row?.before ?? null].map((sealed) =>
    sealed === null ? null : testSecretBox.open(sealed, place),
  );
}

async function headersOf(): Promise<Record<string, string>> {
  const stored = 'select custom_headers_sealed as sealed from webhook_endpoints where id = :id';
  const row = await queryOne<{ sealed: string }>(database, stored, { id });
  return JSON.parse(testSecretBox.open(row?.sealed ?? '', ENDPOINT_HEADERS.place(id)));
}

async function lastAudited(): Promise<object | undefined> {
  const last = 'select detail from audit_log where waba_id = :waba order by id desc limit 1';
  return (await queryOne<{ detail: object }>(database, last, { waba }))?.detail;
}

describe('endpoints of accounts', () => {
  test("another WABA's endpoint answers exactly as one that does not exist", async () => {
    const before = await query(database, 'select e::text as row from webhook_endpoints e');
    const other = await freshTenant(database);
    const calls = [
      (to: string) => endpointStatus(tools, other.wabaId, to),
      (to: string) => updateEndpoint(tools, other.wabaId, to, { description: 'mine' }),
      (to: string) => holdEndpoint(tools, other.wabaId, { id: to, mode: 'paused', reason: '' }),
      (to: string) => enableEndpoint(tools, other.wabaId, { id: to, waiting: 'drop', by: 'a test' }),
      (to: string) => rotateSecret(tools, other.wabaId, to, {}),
      (to: string) => deleteEndpoint(tools, other.wabaId, to),
    ];
    for (const call of calls) {
      for (const to of [id, '4242']) {
        const refusal = { code: 'unknown_endpoint', message: `There is no webhook endpoint ${to}.` };
        await expect(call(to)).rejects.toMatchObject(refusal);
      }
    }
    expect(await query(database, 'select e::text as row from webhook_endpoints e')).toEqual(before);
  });

  test('an order scope changes while nothing is pending, and what goes with it is not saved otherwise', async () => {
    expect(await update({ orderScope: 'endpoint' })).toMatchObject({ orderScope: 'endpoint' });
    await queueRows(database, [queuedRow('a')]);
    const pending = { code: 'deliveries_pending', param: 'orderScope' };
    await expect(update({ orderScope: null, description: 'x' })).rejects.toMatchObject(pending);
    expect(await status()).toMatchObject({ orderScope: 'endpoint', description: '' });
    expect(await update({ orderScope: 'endpoint', description: 'x' })).toMatchObject({ description: 'x' });
  });

  test('the mode `failures` of an older release that runs beside this one counts as the default', async () => {
    await execute(database, `update webhook_endpoints set delivery_workflows = 'failures' where id = :id`, {
      id,
    });
    expect(await status()).toMatchObject({ deliveryWorkflows: null });
    expect(await loadEndpointSettings(database, [id])).toMatchObject([{ deliveryWorkflows: null }]);
    const noted = (fields: object) => expect.objectContaining({ ...fields, workflows: null });
    expect(await findChangedEndpoints(database, 3_600)).toContainEqual(noted({ id }));
    await queueRows(database, [queuedRow('a')]);
    expect(await findLatelyDue(database, '0')).toContainEqual(noted({ endpointId: id }));
  });

  test('publishers see the filters and the scope', async () => {
    const phoneNumberIds = [tenant.secondNumber];
    await update({ phoneNumberIds, eventTypes: ['status'], orderScope: 'endpoint' });
    expect(await endpointsOfWabas(database, [waba])).toMatchObject([
      { id, wabaId: waba, eventTypes: ['status'], phoneNumberIds, orderScope: 'endpoint' },
    ]);
    const other = await freshTenant(database);
    for (const foreign of [other.number, '1', '\0']) {
      const change = update({ phoneNumberIds: [foreign] });
      await expect(change).rejects.toMatchObject({ code: 'unknown_phone_number' });
    }
  });

  test('a change of mode says since when, and forgets what the breaker noted', async () => {
    const trouble = `mode = 'probing', mode_reason = 'fails', mode_changed_at = now() - interval '2 hours',
      failing_since = now() - interval '2 hours', next_probe_at = now(), probe_failures = 9`;
    await execute(database, `update endpoint_health set ${trouble} where endpoint_id = :id`, { id });
    const failing = await status();
    expect(failing).toMatchObject({ mode: 'probing', probeFailures: 9, nextProbeAt: expect.any(Date) });
    await holdEndpoint(tools, waba, { id, mode: 'paused', reason: ' \t' });
    const paused = await status();
    expect(paused).toMatchObject({ mode: 'paused', modeReason: null, probeFailures: 0, nextProbeAt: null });
    expect(paused.failingSince).toEqual(failing.failingSince);
    expect(paused.modeChangedAt.getTime()).toBeGreaterThan(failing.modeChangedAt.getTime());
    await holdEndpoint(tools, waba, { id, mode: 'paused', reason: 'still' });
    expect((await status()).modeChangedAt).toEqual(paused.modeChangedAt);
    await enableEndpoint(tools, waba, { id, waiting: null, by: 'a test' });
    const open = { mode: 'open', modeReason: null, failingSince: null, nextProbeAt: null };
    expect(await status()).toMatchObject(open);
  });

  test('a rotation keeps one secret before the present one, and only for its overlap', async () => {
    const second = await rotateSecret(tools, waba, id, {});
    expect(await secretsOf()).toEqual([second.secret, secret]);
    const third = await rotateSecret(tools, waba, id, { overlapHours: 1 });
    expect(await secretsOf()).toEqual([third.secret, second.secret]);
    const again = rotateSecret(tools, waba, id, { secret: third.secret });
    await expect(again).rejects.toMatchObject({ code: 'secret_in_use' });
    expect(await secretsOf()).toEqual([third.secret, second.secret]);
    const { previousSecretExpiresAt } = await status();
    expect(previousSecretExpiresAt).toEqual(third.previousSecretExpiresAt);
    for (const overlapHours of [-1, 169, Number.NaN]) {
      await expect(rotateSecret(tools, waba, id, { overlapHours })).rejects.toMatchObject({
        code: 'invalid_value',
      });
    }
    const last = await rotateSecret(tools, waba, id, { overlapHours: 0 });
    expect(await secretsOf()).toEqual([last.secret, null]);
  });

  test.each([
    ['another host', 'https://other.example/hook'],
    ['another port', 'https://shop.example:8443/hook'],
    ['another scheme', 'http://shop.example/hook'],
  ])('a change of the URL to %s takes no stored header value along', async (_, url) => {
    const rules = { ...tools, urlRules: { ...tools.urlRules, allowHttp: true } };
    const customHeaders = { Authorization: 'Bearer s3cret', 'X-Shop': '1' };
    await update({ customHeaders }, rules);
    const path = await update({ url: `${URL}/v2` }, rules);
    expect(path).toMatchObject({ customHeaderNames: ['Authorization', 'X-Shop'], droppedHeaderNames: [] });
    expect(path.secretRotationAdvised).toBe(false);

    const moved = await update({ url, customHeaders: { 'x-shop': '2' } }, rules);
    expect(moved).toMatchObject({ customHeaderNames: ['x-shop'], droppedHeaderNames: ['Authorization'] });
    expect(moved.secretRotationAdvised).toBe(true);
    expect(await headersOf()).toEqual({ 'x-shop': '2' });
    const back = await update({ url: URL }, rules);
    expect(back).toMatchObject({ customHeaderNames: [], droppedHeaderNames: ['x-shop'] });
    expect(await lastAudited()).toMatchObject({
      host: 'shop.example',
      previousHost: new globalThis.URL(url).host,
      droppedHeaders: 'x-shop',
    });
  });

  test('new and changed URLs use the ports of the installation, stored ones stay as they are', async () => {
    const strict = { ...tools, urlRules: { ...tools.urlRules, ports: [443, 8443] } };
    const refused = { code: 'port_not_allowed', param: 'url' };
    const url = 'https://shop.example:9443/hook';
    await expect(addEndpoint(strict, waba, { url })).rejects.toMatchObject(refused);
    await expect(update({ url }, strict)).rejects.toMatchObject(refused);
    await expect(setOperationsUrl(strict, waba, url)).rejects.toMatchObject({ code: 'port_not_allowed' });
    await update({ url });
    await setOperationsUrl(tools, waba, `${url}/alerts`);
    expect(await update({ url, timeoutMs: 2_000 }, strict)).toMatchObject({ url });
    expect(await setOperationsUrl(strict, waba, `${url}/alerts`)).toMatchObject({ url: `${url}/alerts` });
    const moved = update({ url: `${url}/2` }, strict);
    await expect(moved).rejects.toMatchObject(refused);
  });

  test('tenants may ask for the addresses of 30 names per minute and WABA', async () => {
    const limited = { ...tools, urlRules: { ...tools.urlRules, lookupsPerMinute: 30 } };
    const ask = (n: number) => update({ url: `https://h${n}.example/` }, limited);
    for (let asked = 0; asked < 29; asked += 1) await ask(asked);
    await setOperationsUrl(limited, waba, 'https://ops.example/');
    const refused = {
      name: 'RateLimitError',
      code: 'rate_limit_exceeded',
      retryAfterSeconds: expect.any(Number),
    };
    await expect(ask(30)).rejects.toMatchObject(refused);
    await expect(setOperationsUrl(limited, waba, 'https://ops.example/2')).rejects.toMatchObject(refused);
    await update({ url: 'https://8.8.8.8/' }, limited);
    await addEndpoint(limited, (await freshTenant(database)).wabaId, { url: URL });
    await update({ url: URL });
  });

  test('headers stored under a key that is gone are said to be so, and can be replaced as a whole', async () => {
    await update({ customHeaders: { 'X-Shop': '1' } });
    await execute(
      database,
      `update webhook_endpoints set custom_headers_sealed = replace(custom_headers_sealed, 'v1:test', 'v1:lost')
        where id = :id`,
      { id },
    );
    expect(await status()).toMatchObject({ customHeaderNames: null });
    await update({ customHeaders: null });
    expect(await status()).toMatchObject({ customHeaderNames: [] });
  });

  test('what a publisher queues while the endpoint is deleted does not stay behind', async () => {
    let commit = () => {};
    const mayCommit = new Promise<void>((resolve) => {
      commit = resolve;
    });
    const row = queuedRow('late');
    const publisher = database.transaction(async (trx) => {
      // Its transaction has begun, as a publisher's that has read the endpoints.
      await query(trx, 'select pg_current_xact_id()');
      await mayCommit;
      await queueRows({ transaction: async (run: (inner: unknown) => unknown) => run(trx) } as never, [row]);
    });
    const deletion = deleteEndpoint(tools, waba, id);
    while ((await query(database, 'select 1 from webhook_endpoints where id = :id', { id })).length > 0)
      await new Promise(setImmediate);
    commit();
    await publisher;
    expect(await deletion).toEqual({ id, dropped: 1 });
    expect(await query(database, 'select 1 from delivery_queue where endpoint_id = :id', { id })).toEqual([]);
  });

  test('counting stops at 100,000 and still tells the oldest', async () => {
    await execute(
      database,
      `insert into delivery_queue (endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid,
                                   created_at)
       select :id, n / 2, case n % 2 when 0 then 'due' else 'queued' end, true, current_date, gen_random_uuid(),
              current_date, gen_random_uuid(), now() - case n when 0 then interval '1 hour' else interval '0' end
         from generate_series(0, 150000) as n`,
      { id },
    );
    const { waiting } = await status();
    expect(waiting).toMatchObject({ count: 100_000, more: true, held: 0, retrying: 0, claimed: 0 });
    expect(waiting.due + waiting.queued).toBeGreaterThan(100_000);
    expect(waiting.oldestMs).toBeGreaterThan(3_600_000 - 1_000);
  });
});
