import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newWebhookSecret } from '../../../src/engine/endpoint/webhook-signature.ts';
import { alertWorkflowId, insertNotice } from '../../../src/ops/alerts/alert-notices.ts';
import {
  clearOperationsUrl,
  endpointAlertsOf,
  operationsUrlOf,
  rotateOperationsSecret,
  setOperationsUrl,
} from '../../../src/ops/alerts/operations-url.ts';
import { operationsSecretPlace } from '../../../src/ops/alerts/sealed-columns.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { makeAddressGuard, shownUrl } from '../../../src/platform/http/outbound-url.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { runAdmin } from '../../support/admin-cli.ts';
import { addEndpoint, type FreshTenant, freshTenant, testSecretBox } from '../../support/test-accounts.ts';
import { answer, eventually, startReceiver, type WebhookReceiver } from '../../support/webhook-receiver.ts';
import { publish } from '../replays/replay-fixtures.ts';
import { type OperationsStack, startOperationsStack } from './operations-stack.ts';

let stack: OperationsStack;
let tenant: FreshTenant;
let receiver: WebhookReceiver;
let endpointId: string;

beforeAll(async () => {
  stack = await startOperationsStack({ alertScheduleMs: [1_000, 1_000] });
});
afterAll(() => stack?.stop());

beforeEach(async () => {
  tenant = await freshTenant(stack.database);
  receiver = await startReceiver();
  endpointId = (await addEndpoint(stack.database, tenant.wabaId, `${receiver.url}/hook`)).id;
});
afterEach(() => receiver.close());

function tools(allowCidrs = ['127.0.0.0/8']) {
  const urlRules = { allowHttp: true, guard: makeAddressGuard({ allowCidrs }), resolve: async () => [] };
  return { database: stack.database, secretBox: testSecretBox, urlRules, actor: SYSTEM };
}

const setUrl = (path = '/operations') => setOperationsUrl(tools(), tenant.wabaId, `${receiver.url}${path}`);

async function raise(alert: 'failing' | 'disabled' | 'recovered' = 'failing'): Promise<string> {
  const notice = { wabaId: tenant.wabaId, endpointId, alert, reason: '9 of 10 failed' };
  const uuid = await stack.database.transaction((trx) =>
    insertNotice(trx, { ...notice, details: { failures: 9 } }),
  );
  if (uuid === null) throw new Error('no such endpoint');
  return uuid;
}

const lastAlert = async () => (await endpointAlertsOf(tools(), tenant.wabaId))[0];
const isState = (state: string) => eventually(state, async () => (await lastAlert())?.state === state);
const tasksOf = (uuid: string) =>
  query(stack.database, 'select 1 from workflow_tasks where workflow_id = :uuid', {
    uuid: alertWorkflowId(uuid),
  });
const resultOf = (uuid: string) => stack.client.workflow.getHandle(alertWorkflowId(uuid)).result();

describe('an alert about an endpoint', () => {
  test('goes to the operations URL, signed with its own secret, in an envelope that is no event', async () => {
    const { secret } = await setUrl();
    await publish(stack.database, tenant.wabaId, { count: 12, keys: 4 });
    await execute(
      stack.database,
      `update endpoint_health set mode = 'probing', mode_reason = 'it mostly fails' where endpoint_id = :endpointId`,
      { endpointId },
    );
    const uuid = await raise();
    await isState('delivered');
    expect(receiver.received).toHaveLength(1);
    const [alert] = receiver.received;
    const headers = Object.fromEntries(
      Object.entries(alert?.headers ?? {}).map(([name, value]) => [name, String(value)]),
    );
    const alertId = `alr_${uuid.replaceAll('-', '')}`;
    expect(new Webhook(secret ?? '').verify(alert?.body ?? '', headers)).toEqual({
      alertId,
      alert: 'endpoint.failing',
      occurredAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      userId: expect.any(Number),
      wabaId: tenant.wabaId,
      endpoint: {
        id: endpointId,
        url: shownUrl(`${receiver.url}/hook`),
        description: '',
        mode: 'probing',
        modeReason: 'it mostly fails',
      },
      reason: '9 of 10 failed',
      waiting: 12,
      details: { failures: 9 },
    });
    expect(alert?.path).toBe('/operations');
    expect(headers).toMatchObject({
      'x-service-alert': 'endpoint.failing',
      'webhook-id': alertId,
      'idempotency-key': alertId,
    });
    expect(headers['x-service-signature']).toBe(headers['webhook-signature']);
    expect(
      Object.keys(headers).filter((name) => /^x-service-(event|delivery|sequence|attempt)/.test(name)),
    ).toEqual([]);
    expect(await resultOf(uuid)).toBe('Delivered with 200 at attempt 1.');
    expect(await tasksOf(uuid)).toEqual([]);
  });

  test('is repeated with the same id and bytes until it is taken; why not, the pending activity says', async () => {
    await setUrl();
    receiver.behave(answer(503, { 'retry-after': '3' }));
    const uuid = await raise('disabled');
    const handle = stack.client.workflow.getHandle(alertWorkflowId(uuid));
    await eventually('it says why', async () => {
      const found = await handle.describe().catch(() => null);
      const message = found?.raw.pendingActivities?.[0]?.lastFailure?.message ?? '';
      return /returned 503.*Next at \d{4}/.test(message);
    });
    receiver.behave(answer(204));
    await isState('delivered');
    expect(receiver.received).toHaveLength(2);
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    const [first, second] = receiver.received;
    expect((second?.arrivedMs ?? 0) - (first?.arrivedMs ?? 0)).toBeGreaterThan(2_900);
  });

  test('is given up after the last attempt, as a failed workflow', async () => {
    await setUrl();
    receiver.behave(answer(500));
    const uuid = await raise();
    await isState('given_up');
    await expect(resultOf(uuid)).rejects.toMatchObject({ cause: { type: 'AlertFailed' } });
    expect(receiver.received).toHaveLength(3);
    expect(await lastAlert()).toMatchObject({
      state: 'given_up',
      attempts: 3,
      lastError: 'the endpoint returned 500',
    });
    expect(await tasksOf(uuid)).toEqual([]);
  });

  test('is given up at once when it is cancelled, answered with 410, or the URL is removed', async () => {
    await setUrl();
    receiver.behave(answer(500, { 'retry-after': '60' }));
    const cancelled = await raise();
    await eventually('first attempt', async () => (await lastAlert())?.attempts, { is: 1 });
    await stack.client.workflow.getHandle(alertWorkflowId(cancelled)).cancel();
    await isState('given_up');
    receiver.behave(answer(410));
    await raise();
    await eventually('410', async () => (await lastAlert())?.lastError, {
      is: 'the endpoint returned 410 Gone',
    });
    receiver.behave(answer(500, { 'retry-after': '1' }));
    await raise();
    await eventually('third alert', async () => (await lastAlert())?.attempts, { is: 1 });
    await clearOperationsUrl(tools(), tenant.wabaId);
    await isState('given_up');
    expect((await lastAlert())?.lastError).toBe('the WABA has no operations URL any more');
  });

  test('is kept and sent nowhere while the WABA has no operations URL', async () => {
    const uuid = await raise('recovered');
    expect(await tasksOf(uuid)).toEqual([]);
    expect(await lastAlert()).toMatchObject({ alert: 'endpoint.recovered', state: 'given_up', attempts: 0 });
    const { wabaId } = await freshTenant(stack.database);
    expect(await endpointAlertsOf(tools(), wabaId)).toEqual([]);
    const elsewhere = { wabaId, endpointId, alert: 'failing' as const, reason: null };
    expect(await stack.database.transaction((trx) => insertNotice(trx, elsewhere))).toBeNull();
  });
});

describe('alerts never go to webhook endpoints', () => {
  test.each(['/hook', '/hook/', '/hook?kind=alerts', '/%68ook'])(
    '%s is refused when it is saved',
    async (path) => {
      await expect(setUrl(path)).rejects.toMatchObject({ code: 'url_is_webhook_endpoint' });
      expect(await operationsUrlOf(tools(), tenant.wabaId)).toBeNull();
    },
  );

  test('a URL that has become one is not sent to', async () => {
    await setUrl('/later-a-hook');
    await addEndpoint(stack.database, tenant.wabaId, `${receiver.url}/later-a-hook`);
    const uuid = await raise();
    await isState('given_up');
    await expect(resultOf(uuid)).rejects.toThrow();
    expect(receiver.received).toEqual([]);
    expect((await lastAlert())?.lastError).toBe('the operations URL is now the URL of a webhook endpoint');
  });
});

describe('the operations URL', () => {
  test('is judged as endpoints are, when it is saved and when it is sent to', async () => {
    for (const url of [
      'http://10.0.0.1/',
      'http://169.254.169.254/latest',
      'ftp://shop.example/',
      'nonsense',
      '',
    ]) {
      await expect(setOperationsUrl(tools(), tenant.wabaId, url)).rejects.toMatchObject({
        name: 'RequestError',
      });
    }
    await setOperationsUrl(tools(['10.0.0.0/8']), tenant.wabaId, 'http://10.0.0.1/');
    const uuid = await raise();
    await isState('given_up');
    await expect(resultOf(uuid)).rejects.toThrow();
    expect((await lastAlert())?.lastError).toMatch(/^blocked_address/);
  });

  test('a secret whose key is missing is no reason to stop trying', async () => {
    await setUrl();
    const setSecret = 'update wabas set operations_secret_sealed = :sealed where waba_id = :wabaId';
    await execute(stack.database, setSecret, { sealed: 'v1:lost:x', wabaId: tenant.wabaId });
    await raise();
    await eventually('tried', async () => ((await lastAlert())?.attempts ?? 0) > 0);
    expect((await lastAlert())?.lastError).toContain('HELIOGRAPH_ENCRYPTION_KEYS');
    const sealed = testSecretBox.seal(newWebhookSecret(), operationsSecretPlace(tenant.wabaId));
    await execute(stack.database, setSecret, { sealed, wabaId: tenant.wabaId });
    await isState('delivered');
  });

  test('its secret is shown once, kept with another URL, and stored sealed', async () => {
    const first = await setUrl();
    expect(first.secret).toMatch(/^whsec_/);
    expect(await setUrl('/other')).toMatchObject({ url: `${receiver.url}/other`, secret: null });
    const [row] = await query<{ text: string }>(
      stack.database,
      'select wabas::text as text from wabas where waba_id = :wabaId',
      { wabaId: tenant.wabaId },
    );
    expect(row?.text).not.toContain(first.secret);
    const { secret } = await rotateOperationsSecret(tools(), tenant.wabaId);
    expect(secret).not.toBe(first.secret);
    await raise();
    await isState('delivered');
    const headers = receiver.received[0]?.headers as Record<string, string>;
    expect(() => new Webhook(secret ?? '').verify(receiver.received[0]?.body ?? '', headers)).not.toThrow();
    const { wabaId } = await freshTenant(stack.database);
    await expect(rotateOperationsSecret(tools(), wabaId)).rejects.toMatchObject({
      code: 'no_operations_url',
    });
  });

  test('admin operations-url sets, shows, rotates and clears', async () => {
    const admin = (...args: string[]) =>
      runAdmin(stack.settings, ['operations-url', ...args, '--waba', tenant.wabaId]);
    const set = await admin('set', '--json', '--url', `${receiver.url}/operations`);
    expect(JSON.parse(set.stdout)).toMatchObject({
      wabaId: tenant.wabaId,
      secret: expect.stringMatching(/^whsec_/),
    });
    await raise();
    await isState('delivered');
    const shown = await admin('show', '--json');
    expect(shown.stdout).not.toContain('whsec_');
    expect(JSON.parse(shown.stdout)).toMatchObject({
      url: `${receiver.url}/operations`,
      alerts: [{ alert: 'endpoint.failing', state: 'delivered', endpointId }],
    });
    expect((await admin('rotate-secret')).stdout).toMatch(/secret +whsec_/);
    const refused = await admin('set', '--url', `${receiver.url}/hook`);
    expect(refused).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(`Webhook endpoint ${endpointId}`),
    });
    expect(JSON.parse((await admin('clear', '--json')).stdout)).toEqual({ wabaId: tenant.wabaId, url: null });
    expect((await admin('rotate-secret')).exitCode).toBe(1);
  });
});
