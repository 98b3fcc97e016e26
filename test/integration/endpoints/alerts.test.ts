import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { newWebhookSecret } from '../../../src/engine/endpoint/webhook-signature.ts';
import { claimNotices, insertNotice } from '../../../src/ops/alerts/alert-notices.ts';
import { startHookSender } from '../../../src/ops/alerts/operations-sender.ts';
import {
  clearOperationsUrl,
  endpointAlertsOf,
  OPERATIONS_SECRET,
  operationsUrlOf,
  rotateOperationsSecret,
  setOperationsUrl,
} from '../../../src/ops/alerts/operations-url.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { makeAddressGuard, shownUrl } from '../../../src/platform/http/outbound-url.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { publicAlertId } from '../../../src/platform/public-ids.ts';
import { makeHttpSender } from '../../../src/platform/sender/http-sender.ts';
import { runAdmin } from '../../support/admin-cli.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { addEndpoint, type FreshTenant, freshTenant, testSecretBox } from '../../support/test-accounts.ts';
import { createTestDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, startReceiver, type WebhookReceiver } from '../../support/webhook-receiver.ts';
import { publish } from '../replays/replay-fixtures.ts';

let stack: Awaited<ReturnType<typeof startStack>>;
let tenant: FreshTenant;
let receiver: WebhookReceiver;
let endpointId: string;

beforeAll(async () => {
  stack = await startStack();
});
afterAll(() => stack?.stop());

/** What sends alerts: PostgreSQL and a loop, no Temporal. */
async function startStack() {
  const store = await createTestDatabase(20);
  const guard = makeAddressGuard({ allowCidrs: ['127.0.0.0/8'] });
  const sender = makeHttpSender({ guard, allowHttp: true, connectTimeoutMs: 2_000, totalTimeoutMs: 5_000 });
  const sending = { sender, secretBox: testSecretBox, timeoutMs: 5_000, logger: silentLogger };
  const { database } = store;
  const loop = startHookSender({ ...sending, database, alertScheduleMs: [1_000, 1_000] });
  const stop = async () => {
    await loop.stop();
    await sender.close();
    await store.close();
  };
  return { database, settings: testSettings(store.url), stop };
}

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
const dueNow = (uuid: string) =>
  execute(stack.database, 'update alert_notices set due_at = now() where id = :uuid', { uuid });

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
    expect(await query(stack.database, 'select 1 from workflow_tasks')).toEqual([]);
  });

  test('is repeated with the same id and bytes until it is taken; why not, the list says', async () => {
    await setUrl();
    receiver.behave(answer(503, { 'retry-after': '3' }));
    await raise('disabled');
    await eventually('it says why', async () => (await lastAlert())?.lastError, {
      is: 'the endpoint returned 503',
    });
    receiver.behave(answer(204));
    await isState('delivered');
    expect(await lastAlert()).toMatchObject({ attempts: 2, lastError: null });
    expect(receiver.received).toHaveLength(2);
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    const [first, second] = receiver.received;
    expect((second?.arrivedMs ?? 0) - (first?.arrivedMs ?? 0)).toBeGreaterThan(2_900);
  });

  test('is given up after the last attempt', async () => {
    await setUrl();
    receiver.behave(answer(500));
    const uuid = await raise();
    await isState('given_up');
    expect(receiver.received).toHaveLength(3);
    const failed = { state: 'given_up', attempts: 3, lastError: 'the endpoint returned 500' };
    expect(await lastAlert()).toMatchObject(failed);
    await dueNow(uuid);
    await sleep(1_500);
    expect(receiver.received).toHaveLength(3);
  });

  test('is given up at once when it is answered with 410, or the URL is removed', async () => {
    await setUrl();
    receiver.behave(answer(410));
    await raise();
    await eventually('410', async () => (await lastAlert())?.lastError, {
      is: 'the endpoint returned 410 Gone',
    });
    receiver.behave(answer(500, { 'retry-after': '1' }));
    await raise();
    await eventually('second alert', async () => (await lastAlert())?.attempts, { is: 1 });
    await clearOperationsUrl(tools(), tenant.wabaId);
    await isState('given_up');
    expect((await lastAlert())?.lastError).toBe('the WABA has no operations URL any more');
  });

  test('of one WABA whose URL hangs hold up no other, however many they are', async () => {
    const hanging = await startReceiver(() => new Promise(() => {}));
    onTestFinished(() => hanging.close());
    await setOperationsUrl(tools(), tenant.wabaId, `${hanging.url}/operations`);
    for (let n = 0; n < 40; n += 1) await raise();
    await eventually('it hangs', () => hanging.received.length >= 8);
    const other = await freshTenant(stack.database);
    const { id } = await addEndpoint(stack.database, other.wabaId, `${receiver.url}/hook`);
    await setOperationsUrl(tools(), other.wabaId, `${receiver.url}/operations`);
    const notice = { wabaId: other.wabaId, endpointId: id, alert: 'failing' as const, reason: null };
    await stack.database.transaction((trx) => insertNotice(trx, notice));
    await eventually('the other has it', () => receiver.received.length, { is: 1 });
    expect(hanging.received).toHaveLength(8);
  });

  test('is claimed by one of ten workers that look at the same moment', async () => {
    await setUrl();
    for (let round = 0; round < 5; round += 1) {
      for (let n = 0; n < 8; n += 1) await raise();
      const claim = () => claimNotices(stack.database, { leaseMs: 60_000, busy: [] });
      const claimed = (await Promise.all(Array.from({ length: 10 }, claim))).flat();
      const sent = receiver.received.map(({ headers }) => headers['webhook-id']);
      const all = [...claimed.map(({ uuid }) => publicAlertId(uuid)), ...sent];
      expect(new Set(all).size).toBe(all.length);
    }
  });

  test('is kept and sent nowhere while the WABA has no operations URL', async () => {
    await raise('recovered');
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
    await raise();
    await isState('given_up');
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
    await raise();
    await isState('given_up');
    expect((await lastAlert())?.lastError).toMatch(/^blocked_address/);
  });

  test('a secret whose key is missing is no reason to stop trying', async () => {
    await setUrl();
    const setSecret = 'update wabas set operations_secret_sealed = :sealed where waba_id = :wabaId';
    await execute(stack.database, setSecret, { sealed: 'v1:lost:x', wabaId: tenant.wabaId });
    await raise();
    await eventually('tried', async () => ((await lastAlert())?.attempts ?? 0) > 0);
    expect((await lastAlert())?.lastError).toContain('HELIOGRAPH_ENCRYPTION_KEYS');
    const sealed = testSecretBox.seal(newWebhookSecret(), OPERATIONS_SECRET.place(tenant.wabaId));
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
