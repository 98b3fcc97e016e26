import { beforeEach, describe, expect, test } from 'vitest';
import { newWebhookSecret } from '../../../src/engine/endpoint/webhook-signature.ts';
import { insertNotice } from '../../../src/ops/alerts/alert-notices.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { type FreshTenant, freshTenant } from '../../support/test-accounts.ts';
import { addKey, apiOfFile, comparable } from '../api/api-harness.ts';
import { externalClient } from '../api/external-client.ts';
import { publish } from '../replays/replay-fixtures.ts';

const ENDPOINTS = '/api/external/webhook-endpoints';
const OPERATIONS = '/api/external/operations-url';
/** An address, so that no name has to be resolved. */
const URL = 'https://93.184.216.34/hook';

const api = apiOfFile();
let tenant: FreshTenant;
let call: Awaited<ReturnType<typeof externalClient>>;

beforeEach(async () => {
  tenant = await freshTenant(api.database);
  call = await externalClient(api, tenant.wabaId);
});

const publishMany = (count: number) => publish(api.database, tenant.wabaId, { count, keys: 2 });

/** Calls the API as another tenant. */
const asOther = async () => await externalClient(api, (await freshTenant(api.database)).wabaId);

describe('webhook endpoints', () => {
  test('show their URLs in full only to a key that may change them', async () => {
    const secret = 'https://93.184.216.34/services/T0/geheim?token=geheim';
    const { id } = (await call('POST', ENDPOINTS, { url: secret })).json();
    await call('PUT', OPERATIONS, { url: 'https://93.184.216.35/services/geheim' });
    const { id: keyId, authorization } = await addKey(api.database, tenant.wabaId);
    await execute(api.database, `update api_keys set scopes = '{read}' where id = :keyId`, { keyId });
    const read = (url: string) => api.app.inject({ url, headers: { authorization } });
    for (const path of [`${ENDPOINTS}/${id}`, ENDPOINTS, OPERATIONS]) {
      const [full, masked] = [await call('GET', path), await read(path)];
      expect([path, full.statusCode, masked.statusCode]).toEqual([path, 200, 200]);
      expect(full.body).toContain('/services/');
      expect(masked.body).toMatch(/"https:\/\/93\.184\.216\.3\d\/\*\*\*[0-9a-f]{6}"/);
      expect(masked.body).not.toMatch(/geheim|services/);
    }
  });

  test('are created with a secret that is shown once, listed page by page, changed and deleted', async () => {
    const created = await call('POST', ENDPOINTS, {
      url: URL,
      description: 'orders',
      eventTypes: ['message', 'order'],
      phoneNumberIds: [tenant.number],
      customHeaders: { 'X-Token': 'hidden-value' },
      retryScheduleSeconds: [5, 60],
      timeoutMs: 5_000,
      maxInFlight: 5,
      rateLimitPerSecond: 10,
      blockLimitSeconds: 600,
      deliveryWorkflows: 'always',
      alwaysWorkflowsFor: ['payment'],
      orderScope: 'conversation',
    });
    expect(created.statusCode).toBe(201);
    const { id, secret } = created.json();
    expect(created.headers.location).toBe(`${ENDPOINTS}/${id}`);
    expect(secret).toMatch(/^whsec_/);
    const got = await call('GET', `${ENDPOINTS}/${id}`);
    expect(got.json()).toMatchObject({
      id,
      url: URL,
      description: 'orders',
      eventTypes: ['message', 'order'],
      phoneNumberIds: [tenant.number],
      customHeaderNames: ['X-Token'],
      retryScheduleSeconds: [5, 60],
      timeoutMs: 5_000,
      maxInFlight: 5,
      rateLimitPerSecond: 10,
      blockLimitSeconds: 600,
      deliveryWorkflows: 'always',
      alwaysWorkflowsFor: ['payment'],
      orderScope: 'conversation',
      mode: 'open',
      waiting: { count: 0, more: false, oldestMs: null },
    });
    for (const text of [got.body, (await call('GET', ENDPOINTS)).body]) {
      expect(text).not.toContain('whsec_');
      expect(text).not.toContain('hidden-value');
    }
    const second = (await call('POST', ENDPOINTS, { url: `${URL}/2` })).json();
    const first = (await call('GET', `${ENDPOINTS}?limit=1`)).json();
    expect(first.data.map((one: { id: string }) => one.id)).toEqual([id]);
    expect((await call('GET', `${ENDPOINTS}?cursor=${first.nextCursor}`)).json()).toMatchObject({
      data: [{ id: second.id }],
      hasMore: false,
      nextCursor: null,
    });
    const changed = await call('PATCH', `${ENDPOINTS}/${id}`, {
      eventTypes: null,
      customHeaders: { 'X-Token': null, 'X-B': 'b' },
      maxInFlight: null,
    });
    expect(changed.json()).toMatchObject({
      eventTypes: null,
      customHeaderNames: ['X-B'],
      maxInFlight: null,
      timeoutMs: 5_000,
      url: URL,
    });
    expect(changed.json()).toMatchObject({ droppedHeaderNames: [], secretRotationAdvised: false });
    const elsewhere = await call('PATCH', `${ENDPOINTS}/${id}`, { url: 'https://93.184.216.34:8443/hook' });
    expect(elsewhere.json()).toMatchObject({
      customHeaderNames: [],
      droppedHeaderNames: ['X-B'],
      secretRotationAdvised: true,
    });
    await publishMany(3);
    const scope = await call('PATCH', `${ENDPOINTS}/${id}`, { orderScope: 'event' });
    expect([scope.statusCode, scope.json().error]).toMatchObject([
      409,
      { code: 'deliveries_pending', param: 'orderScope', message: expect.stringContaining('3 deliveries') },
    ]);
    const gone = await call('DELETE', `${ENDPOINTS}/${id}`);
    expect([gone.statusCode, gone.json()]).toEqual([200, { id, deleted: true, dropped: 3 }]);
    expect((await call('GET', `${ENDPOINTS}/${id}`)).statusCode).toBe(404);
  });

  test('refuse what they cannot be with the member that is wrong', async () => {
    const other = await freshTenant(api.database);
    const { id } = (await call('POST', ENDPOINTS, { url: URL })).json();
    for (const [payload, status, code, param] of [
      [{}, 400, 'invalid_parameter', 'url'],
      [{ url: 3 }, 400, 'invalid_parameter', 'url'],
      [{ url: URL, secret: 'x' }, 400, 'invalid_parameter', 'secret'],
      [{ url: 'http://93.184.216.34/' }, 422, 'invalid_url', 'url'],
      [{ url: 'https://127.0.0.1/' }, 422, 'invalid_url', 'url'],
      [{ url: 'https://0x7f.1/' }, 422, 'invalid_url', 'url'],
      [{ url: 'nonsense' }, 422, 'invalid_url', 'url'],
      [{ url: 'https://a\u0000b/' }, 400, 'invalid_parameter', 'url'],
      [{ url: `https://93.184.216.34/${'x'.repeat(3000)}` }, 422, 'invalid_url', 'url'],
      [{ url: URL, description: 'a\u0000' }, 400, 'invalid_parameter', 'description'],
      [{ url: URL, eventTypes: [] }, 400, 'invalid_parameter', 'eventTypes'],
      [{ url: URL, eventTypes: ['sms'] }, 400, 'invalid_parameter', 'eventTypes/0'],
      [{ url: URL, eventTypes: 'message' }, 400, 'invalid_parameter', 'eventTypes'],
      [{ url: URL, phoneNumberIds: [other.number] }, 422, 'unknown_phone_number', 'phoneNumberIds'],
      [{ url: URL, phoneNumberIds: ['1'] }, 422, 'unknown_phone_number', 'phoneNumberIds'],
      [{ url: URL, customHeaders: { 'webhook-id': 'x' } }, 400, 'invalid_parameter', 'customHeaders'],
      [{ url: URL, customHeaders: { a: 'b\r\nc: d' } }, 400, 'invalid_parameter', 'customHeaders'],
      [{ url: URL, customHeaders: { a: 3 } }, 400, 'invalid_parameter', 'customHeaders/a'],
      [{ url: URL, retryScheduleSeconds: [0] }, 400, 'invalid_parameter', 'retryScheduleSeconds'],
      [{ url: URL, timeoutMs: 999_999 }, 400, 'invalid_parameter', 'timeoutMs'],
      [{ url: URL, timeoutMs: 1.5 }, 400, 'invalid_parameter', 'timeoutMs'],
      [{ url: URL, maxInFlight: 0 }, 400, 'invalid_parameter', 'maxInFlight'],
      [{ url: URL, orderScope: 'none' }, 400, 'invalid_parameter', 'orderScope'],
      [{ url: URL, deliveryWorkflows: 'failures' }, 400, 'invalid_parameter', 'deliveryWorkflows'],
      [{ url: URL, alwaysWorkflowsFor: ['refund'] }, 400, 'invalid_parameter', 'alwaysWorkflowsFor/0'],
    ] as const) {
      for (const [method, url] of [
        ['POST', ENDPOINTS],
        ['PATCH', `${ENDPOINTS}/${id}`],
      ] as const) {
        if (method === 'PATCH' && !('url' in payload)) continue;
        const response = await call(method, url, payload);
        const { error } = response.json();
        expect([payload, response.statusCode, error?.code, error?.param]).toEqual([
          payload,
          status,
          code,
          param,
        ]);
      }
    }
    const notJson = await call('POST', ENDPOINTS, [] as unknown as object);
    expect(notJson.statusCode).toBe(400);
    expect((await call('GET', ENDPOINTS)).json().data).toHaveLength(1);
  });

  test('of another WABA answer exactly as unknown ones, whatever is asked of them, and stay as they are', async () => {
    const theirs = await asOther();
    const { id } = (await theirs('POST', ENDPOINTS, { url: URL })).json();
    const before = (await theirs('GET', `${ENDPOINTS}/${id}`)).json();
    const requests = [
      ['GET', ''],
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/pause'],
      ['POST', '/enable'],
      ['POST', '/rotate-secret'],
      ['POST', '/test'],
      ['GET', '/statistics'],
    ] as const;
    for (const [method, path] of requests) {
      const missing = comparable(await call(method, `${ENDPOINTS}/123456789${path}`));
      expect([method, path, missing.status]).toEqual([method, path, 404]);
      for (const odd of [id, '0', 'x', '9'.repeat(18), '9'.repeat(19), '9'.repeat(40), '%00', `0${id}`]) {
        expect([odd, comparable(await call(method, `${ENDPOINTS}/${odd}${path}`))]).toEqual([odd, missing]);
      }
    }
    expect((await theirs('GET', `${ENDPOINTS}/${id}`)).json()).toEqual(before);
    expect((await call('GET', ENDPOINTS)).json().data).toEqual([]);
  });

  test('are paused with what comes waiting, and enabled only with a word about what waits', async () => {
    const { id } = (await call('POST', ENDPOINTS, { url: URL })).json();
    const paused = await call('POST', `${ENDPOINTS}/${id}/pause`, { reason: 'release' });
    expect(paused.json()).toMatchObject({ mode: 'paused', modeReason: 'release' });
    expect((await call('POST', `${ENDPOINTS}/${id}/enable`)).json()).toMatchObject({
      mode: 'open',
      dropped: 0,
    });
    await call('POST', `${ENDPOINTS}/${id}/pause`);
    await publishMany(5);
    expect((await call('GET', `${ENDPOINTS}/${id}`)).json().waiting).toMatchObject({
      count: 5,
      due: 2,
      queued: 3,
    });
    const refused = await call('POST', `${ENDPOINTS}/${id}/enable`);
    expect([refused.statusCode, refused.json().error.code]).toEqual([409, 'waiting_choice_required']);
    expect(refused.json().error.message).toMatch(/^5 deliveries wait/);
    expect((await call('POST', `${ENDPOINTS}/${id}/enable`, { waiting: 'keep' })).json().error.param).toBe(
      'waiting',
    );
    expect((await call('POST', `${ENDPOINTS}/${id}/enable`, { waiting: 'drop' })).json()).toMatchObject({
      mode: 'open',
      dropped: 5,
    });
    await call('POST', `${ENDPOINTS}/${id}/pause`);
    await publishMany(2);
    expect((await call('POST', `${ENDPOINTS}/${id}/enable`, { waiting: 'send' })).json()).toMatchObject({
      mode: 'open',
      dropped: 0,
      waiting: { count: 2 },
    });
    // Once it is open, nothing waits for a choice any more.
    expect((await call('POST', `${ENDPOINTS}/${id}/enable`, { waiting: 'drop' })).json()).toMatchObject({
      mode: 'open',
      dropped: 0,
      waiting: { count: 2 },
    });
  });

  test('get a new secret with an overlap, or one of the tenant’s own, and never the same twice', async () => {
    const { id, secret } = (await call('POST', ENDPOINTS, { url: URL })).json();
    const url = `${ENDPOINTS}/${id}/rotate-secret`;
    const rotated = (await call('POST', url)).json();
    expect(rotated).toEqual({
      id,
      secret: expect.stringMatching(/^whsec_/),
      previousSecretExpiresAt: expect.any(String),
    });
    expect(rotated.secret).not.toBe(secret);
    const own = newWebhookSecret();
    expect((await call('POST', url, { secret: own, overlapHours: 0 })).json()).toEqual({
      id,
      secret: own,
      previousSecretExpiresAt: null,
    });
    const again = await call('POST', url, { secret: own });
    expect([again.statusCode, again.json().error.code]).toEqual([409, 'secret_in_use']);
    expect(again.body).not.toContain(own);
    for (const [payload, param] of [
      [{ secret: 'x' }, 'secret'],
      [{ overlapHours: 169 }, 'overlapHours'],
      [{ overlapHours: -1 }, 'overlapHours'],
    ] as const) {
      expect((await call('POST', url, payload)).json().error).toMatchObject({
        code: 'invalid_parameter',
        param,
      });
    }
  });

  test('show their attempts per hour and minute, and refuse ranges that are too long', async () => {
    const { id } = (await call('POST', ENDPOINTS, { url: URL })).json();
    const minuteMs = Math.floor(Date.now() / 60_000) * 60_000;
    await api.database.raw(
      `insert into endpoint_minutes (endpoint_id, minute, successes, failures, total_ms)
       values (:id, :now, 3, 1, 100), (:id, :before, 1, 0, 60)`,
      { id, now: new Date(minuteMs), before: new Date(minuteMs - 600_000) },
    );
    const url = `${ENDPOINTS}/${id}/statistics`;
    const hours = (await call('GET', url)).json();
    expect(hours).toMatchObject({
      endpointId: id,
      interval: 'hour',
      total: { successes: 4, failures: 1, meanDurationMs: 32 },
      waiting: { count: 0 },
      runs: { deliveries: 0, withRun: 0 },
    });
    expect(hours.data).toHaveLength(24);
    const minutes = (await call('GET', `${url}?interval=minute`)).json();
    expect(minutes.data).toHaveLength(60);
    const at = new Date(minuteMs).toISOString();
    expect(minutes.data.find((one: { at: string }) => one.at === at)).toEqual({
      at,
      successes: 3,
      failures: 1,
      meanDurationMs: 25,
    });
    expect(minutes.data.filter((one: { successes: number }) => one.successes > 0)).toHaveLength(2);
    expect(minutes.data[0]).toMatchObject({ successes: 0, failures: 0, meanDurationMs: null });
    for (const text of [
      '?interval=day',
      '?since=2020-01-01T00:00:00Z',
      '?since=2027-01-02T00:00:00Z&until=2027-01-01T00:00:00Z',
    ]) {
      expect([text, (await call('GET', `${url}${text}`)).statusCode]).toEqual([text, 400]);
    }
  });
});

describe('the operations URL', () => {
  test('is set with a secret that is shown once, kept apart from endpoints, rotated and removed', async () => {
    expect((await call('GET', OPERATIONS)).json()).toEqual({ url: null });
    expect((await call('POST', `${OPERATIONS}/rotate-secret`)).json().error.code).toBe('no_operations_url');
    await call('POST', ENDPOINTS, { url: URL });
    const refused = await call('PUT', OPERATIONS, { url: `${URL}?x=1` });
    expect([refused.statusCode, refused.json().error.code]).toEqual([409, 'url_is_webhook_endpoint']);
    const url = 'https://93.184.216.34/operations';
    const set = (await call('PUT', OPERATIONS, { url })).json();
    expect(set).toMatchObject({ url, secret: expect.stringMatching(/^whsec_/) });
    const same = { url, secret: null, secretRotationAdvised: false };
    expect((await call('PUT', OPERATIONS, { url })).json()).toEqual(same);
    const elsewhere = await call('PUT', OPERATIONS, { url: 'https://93.184.216.34:8443/operations' });
    expect(elsewhere.json()).toMatchObject({ secret: null, secretRotationAdvised: true });
    await call('PUT', OPERATIONS, { url });
    expect((await call('GET', OPERATIONS)).json()).toEqual({ url });
    const rotated = (await call('POST', `${OPERATIONS}/rotate-secret`)).json();
    expect(rotated.secret).not.toBe(set.secret);
    expect((await call('PUT', OPERATIONS, { url: 'https://10.0.0.1/' })).json().error).toMatchObject({
      code: 'invalid_url',
      param: 'url',
    });
    expect((await call('DELETE', OPERATIONS)).json()).toEqual({ url: null });
    const other = await asOther();
    expect((await other('GET', OPERATIONS)).json()).toEqual({ url: null });
  });

  test('has its alerts listed page by page, the newest first, for their own WABA only', async () => {
    const { id: endpointId } = (await call('POST', ENDPOINTS, { url: URL })).json();
    for (const alert of ['failing', 'disabled', 'recovered'] as const) {
      await api.database.transaction((trx) =>
        insertNotice(trx, { wabaId: tenant.wabaId, endpointId, alert, reason: null }),
      );
    }
    const first = (await call('GET', '/api/external/endpoint-alerts?limit=2')).json();
    expect(first.data).toMatchObject([
      {
        id: expect.stringMatching(/^alr_/),
        endpointId,
        alert: expect.stringContaining('recovered'),
        state: 'given_up',
        attempts: 0,
      },
      { alert: expect.stringContaining('disabled') },
    ]);
    const rest = (await call('GET', `/api/external/endpoint-alerts?cursor=${first.nextCursor}`)).json();
    expect(rest.data).toMatchObject([{ alert: expect.stringContaining('failing') }]);
    expect(rest.hasMore).toBe(false);
    const other = await asOther();
    expect((await other('GET', '/api/external/endpoint-alerts')).json().data).toEqual([]);
  });
});
