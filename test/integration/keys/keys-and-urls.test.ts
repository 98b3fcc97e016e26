import { beforeEach, describe, expect, test } from 'vitest';
import { createKey } from '../../../src/features/keys/api-keys.ts';
import { queueReplayPage } from '../../../src/features/replays/replay-steps.ts';
import { queueAlertMails } from '../../../src/ops/alerts/alert-mails.ts';
import { lookForConditions } from '../../../src/ops/alerts/conditions.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import { execute, query, queryOne } from '../../../src/platform/postgres/sql.ts';
import { type FreshTenant, freshTenant, testSecretBox } from '../../support/test-accounts.ts';
import { addUser, openAlerts, turn } from '../alerts/alerts-fixtures.ts';
import { apiOfFile } from '../api/api-harness.ts';
import { publishOne } from '../deliveries/event-fixtures.ts';

const ENDPOINTS = '/api/external/webhook-endpoints';
const REPLAYS = '/api/external/replays';
const OPERATIONS = '/api/external/operations-url';

const api = apiOfFile();
let tenant: FreshTenant;

beforeEach(async () => {
  tenant = await freshTenant(api.database);
});

/** Calls the API with a new key that has these scopes. */
async function callerWith(scopes: readonly string[]) {
  const tools = { database: api.database, actor: OPERATOR_COMMAND };
  const { apiKey, id } = await createKey(tools, tenant.wabaId, { name: 'x', expiresAt: null, scopes });
  const call = async (method: 'POST' | 'PATCH' | 'PUT', url: string, payload: object) =>
    await api.app.inject({ method, url, payload, headers: { authorization: `Bearer ${apiKey}` } });
  return { id, call };
}

const publish = (eventId: string) =>
  publishOne(api.database, eventId, { wabaId: tenant.wabaId, phoneNumberId: tenant.number });

/** A statement whose one value is the WABA. */
const change = (text: string) => execute(api.database, text, { wabaId: tenant.wabaId });

/** All that was queued is delivered. */
async function settle(): Promise<void> {
  await change(`update deliveries set state = 'delivered', finished_at = now() where waba_id = :wabaId`);
  await change(
    'delete from delivery_queue where delivery_id in (select id from deliveries where waba_id = :wabaId)',
  );
}

/** Who sees the alerts of the tenant. */
const addBoss = () => addUser(api.database, `boss@${tenant.wabaId}.example`, { ...tenant, role: 'admin' });

const REFUSED = { statusCode: 403, code: 'insufficient_scope' };
const outcome = ({ statusCode, json }: Awaited<ReturnType<typeof api.app.inject>>) => ({
  statusCode,
  code: json().error?.code,
});

describe('a key that manages webhooks and reads nothing', () => {
  test('has no events replayed to an endpoint that is newer than they are, by filter, by list or one by one', async () => {
    const id = await publish('e');
    const { call } = await callerWith(['manage_webhooks']);
    const made = (await call('POST', ENDPOINTS, { url: 'https://evil.example/h' })).json();
    const one = `/api/external/events/${id}/replay`;
    for (const answer of [
      await call('POST', REPLAYS, { endpointId: made.id, states: ['not_sent'] }),
      await call('POST', REPLAYS, { eventTypes: ['message'] }),
      await call('POST', one, { endpointId: made.id }),
    ]) {
      expect(outcome(answer)).toEqual(REFUSED);
      expect(answer.json().error.message).toContain('read_events');
    }
    for (const scope of ['read_events', 'read']) {
      const reader = await callerWith(['manage_webhooks', scope]);
      expect((await reader.call('POST', one, { endpointId: made.id })).statusCode).toBe(201);
    }
  });

  test('has nothing replayed that was delivered before the URL of the endpoint was changed', async () => {
    const { call } = await callerWith(['manage_webhooks']);
    const { id } = (await call('POST', ENDPOINTS, { url: 'https://shop.example/h' })).json();
    await publish('e');
    await settle();
    const replay = { endpointId: id, states: ['delivered'] };
    expect((await call('POST', REPLAYS, replay)).statusCode).toBe(201);
    await settle();
    await change(`update replays set state = 'done', finished_at = now() where waba_id = :wabaId`);
    expect((await call('PATCH', `${ENDPOINTS}/${id}`, { url: 'https://evil.example/h' })).statusCode).toBe(
      200,
    );
    expect(outcome(await call('POST', REPLAYS, replay))).toEqual(REFUSED);
    // Other settings leave the address as it is.
    await call('PATCH', `${ENDPOINTS}/${id}`, { description: 'x' });
    await publish('later');
    await settle();
    const last = 'select max(created_at)::text as at from events where waba_id = :wabaId';
    const later = await queryOne<{ at: string }>(api.database, last, { wabaId: tenant.wabaId });
    const from = new Date(later?.at ?? '').toISOString();
    expect((await call('POST', REPLAYS, { ...replay, from })).statusCode).toBe(201);
  });

  test('changes no URL under a replay that is under way', async () => {
    const { call } = await callerWith(['manage_webhooks']);
    const { id } = (await call('POST', ENDPOINTS, { url: 'https://shop.example/h' })).json();
    await publish('e');
    await settle();
    const replay = (await call('POST', REPLAYS, { endpointId: id, states: ['delivered'] })).json();
    const move = async () => await call('PATCH', `${ENDPOINTS}/${id}`, { url: 'https://evil.example/h' });
    // Before the replay has queued anything, it keeps to the events that are newer than the URL.
    await change('update webhook_endpoints set url_set_at = now() where waba_id = :wabaId');
    const ids = { wabaId: tenant.wabaId, replayId: replay.id, endpointId: id };
    expect((await queueReplayPage(api.database, ids))?.queuedIds).toEqual([]);
    await change(`update webhook_endpoints set url_set_at = '-infinity' where waba_id = :wabaId`);
    const again = (await call('POST', REPLAYS, { endpointId: id, states: ['delivered'] })).json();
    const queued = await queueReplayPage(api.database, { ...ids, replayId: again.id });
    expect(queued?.queuedIds).toHaveLength(1);
    expect(outcome(await move())).toEqual(REFUSED);
    expect((await call('PATCH', `${ENDPOINTS}/${id}`, { description: 'x' })).statusCode).toBe(200);
    await settle();
    expect((await move()).statusCode).toBe(200);
  });
});

describe('a URL that a key sets', () => {
  test('is an alert and an e-mail to the administrators of the tenant, again for each change, and ends after a week', async () => {
    const { database } = api;
    const admin = await addBoss();
    const { id: keyId, call } = await callerWith(['manage_webhooks']);
    const { id } = (await call('POST', ENDPOINTS, { url: 'https://evil.example/hook?token=s3cret' })).json();
    await turn(database);
    expect(await openAlerts(database, admin)).toEqual([
      `url_set_by_key key ${keyId} ${new Date().toISOString().slice(0, 10)}`,
    ]);
    const told = 'select reason from alerts where waba_id = :wabaId';
    const alert = await queryOne<{ reason: string }>(database, told, { wabaId: tenant.wabaId });
    expect(alert?.reason).toContain(`API key ${keyId} set the URL of endpoint ${id}: evil.example`);
    expect(alert?.reason).not.toContain('s3cret');
    await execute(database, `update alerts set told_at = told_at - interval '2 minutes'`);
    await queueAlertMails(database, { secretBox: testSecretBox, publicUrl: 'https://gateway.example' });
    expect(await query(database, 'select kind, recipient from mails')).toEqual([
      { kind: 'alerts', recipient: `boss@${tenant.wabaId}.example` },
    ]);
    await execute(database, 'update alerts set resolved_at = now()');
    await call('PATCH', `${ENDPOINTS}/${id}`, { url: 'https://other.example/hook' });
    await turn(database);
    expect(await openAlerts(database, admin)).toEqual([
      `url_set_by_key key ${keyId} ${new Date().toISOString().slice(0, 10)}`,
    ]);
    await change(
      `update webhook_endpoints set url_set_at = now() - interval '8 days' where waba_id = :wabaId`,
    );
    await turn(database);
    expect(await openAlerts(database, admin)).toEqual([]);
  });

  test('is one alert for all of a key and a day, and none in development', async () => {
    const { database } = api;
    const admin = await addBoss();
    const { id: keyId, call } = await callerWith(['manage_webhooks']);
    for (const host of ['a', 'b', 'c', 'd', 'e'])
      await call('POST', ENDPOINTS, { url: `https://${host}.example/hook` });
    expect(
      (await lookForConditions(database, new Date(), { isDevelopment: true })).map(({ kind }) => kind),
    ).not.toContain('url_set_by_key');
    await turn(database);
    expect(await openAlerts(database, admin)).toHaveLength(1);
    const told = 'select reason from alerts where waba_id = :wabaId';
    const alert = await queryOne<{ reason: string }>(database, told, { wabaId: tenant.wabaId });
    expect(alert?.reason).toMatch(
      new RegExp(`^API key ${keyId} set 5 URLs, of endpoint \\d+: e.example, .* and 2 more\\.$`),
    );
  });

  test('is an alert where it receives alerts too', async () => {
    const { database } = api;
    const admin = await addBoss();
    const { id: keyId, call } = await callerWith(['manage_webhooks']);
    expect((await call('PUT', OPERATIONS, { url: 'https://ops.example/alerts' })).statusCode).toBe(200);
    await turn(database);
    expect(await openAlerts(database, admin)).toEqual([
      `url_set_by_key key ${keyId} ${new Date().toISOString().slice(0, 10)}`,
    ]);
  });
});
