import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { recordBy, SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { queryValue } from '../../../../src/platform/postgres/sql.ts';
import {
  answer,
  eventually,
  startReceiver,
  type WebhookReceiver,
} from '../../../support/webhook-receiver.ts';
import { apiOfFile, testConfig } from '../api-harness.ts';
import { LOOPBACK, retryHooksNow, startHooks } from './hook-fixtures.ts';
import { fresh, type PlatformClient, platformClient } from './platform-client.ts';

const config = testConfig(LOOPBACK);
const api = apiOfFile(async () => ({ config }));

let ask: PlatformClient;
let receiver: WebhookReceiver;

beforeEach(async () => {
  await api.database.raw('delete from operations_hooks');
  ask = await platformClient(api);
  receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const { status } = await ask('PUT', '/operations-hooks/crm', {
    url: `${receiver.url}/crm`,
    types: ['tenant.*'],
  });
  expect(status).toBe(201);
});

type Sent = { id: string; type: string; sequence: number; tenant: { externalId: string } };

const accepted = (): Sent[] =>
  receiver.received.filter(({ status }) => status === 200).map(({ body }) => JSON.parse(body));
const ofTenant = (name: string, events: Sent[]) => events.filter(({ tenant }) => tenant.externalId === name);

const hook = async () => (await ask('GET', '/operations-hooks/crm')).body;
const inFeed = async (name: string): Promise<Sent[]> =>
  (await ask('GET', `/operation-events?types=tenant.*&tenant=${name}`)).body.data;

/** Makes tenants, each with `changes` further events, by turns. */
async function addTenants(count: number, changes: number): Promise<string[]> {
  const names = Array.from({ length: count }, () => fresh().name);
  for (let turn = 0; turn <= changes; turn += 1)
    for (const name of names) await ask('PUT', `/tenants/${name}`, { businessName: `Acme ${turn}` });
  return names;
}

/** Refuses some events for now. */
function refuse(isRefused: (event: Sent) => boolean): void {
  receiver.behave((webhook, response) =>
    answer(isRefused(JSON.parse(webhook.body)) ? 422 : 200)(webhook, response),
  );
}

test('an event of a tenant that is refused holds up this tenant, and no other', async () => {
  const [dead = '', other = ''] = await addTenants(2, 3);
  const [, second] = await inFeed(dead);
  refuse(({ id }) => id === second?.id);
  startHooks(api.database, config);
  await eventually('the other has all', () => ofTenant(other, accepted()).length, {
    is: (await inFeed(other)).length,
  });
  expect(ofTenant(dead, accepted())).toHaveLength(1);
  const waiting = await hook();
  expect(waiting.sequence).toBeLessThan(second?.sequence ?? 0);
  expect(waiting).toMatchObject({
    state: 'enabled',
    failingSince: expect.any(String),
    nextAttemptAt: expect.any(String),
    lastError: 'the endpoint returned 422',
  });
  const [later = ''] = await addTenants(1, 0);
  await eventually('a later one has its own', () => ofTenant(later, accepted()).length, { is: 2 });
  await ask('PATCH', `/tenants/${dead}`, { businessName: 'Acme again' });
  refuse(() => false);
  await eventually('all have come', async () => {
    await retryHooksNow(api.database);
    return ofTenant(dead, accepted()).length === (await inFeed(dead)).length;
  });
  expect(ofTenant(dead, accepted())).toEqual(await inFeed(dead));
  await eventually('it is well again', async () => (await hook()).failingSince, { is: null });
  const last = await queryValue<number>(api.database, 'select max(position)::integer from audit_chain');
  await eventually('nothing is held', async () => (await hook()).sequence, { is: last });
});

test('whatever is refused and however often workers end, each tenant has all its events, in order', async () => {
  const names = await addTenants(8, 5);
  const all = (await Promise.all(names.map(inFeed))).flat();
  const refusals = new Map(all.map(({ id }) => [id, Math.random() < 0.3 ? Math.ceil(Math.random() * 3) : 0]));
  const drawn = JSON.stringify([...refusals]);
  refuse(({ id }) => {
    const left = refusals.get(id) ?? 0;
    refusals.set(id, left - 1);
    return left > 0;
  });
  let stops = [startHooks(api.database, config), startHooks(api.database, config)];
  await eventually('all have come', async () => {
    await retryHooksNow(api.database);
    if (Math.random() < 0.2) {
      await stops[0]?.();
      stops = [...stops.slice(1), startHooks(api.database, config)];
    }
    return new Set(accepted().map(({ id }) => id)).size === all.length;
  });
  for (const name of names) {
    const firsts = [...new Map(ofTenant(name, accepted()).map((event) => [event.id, event])).values()];
    expect(firsts, drawn).toEqual(await inFeed(name));
  }
});

test('a hook that refuses everything is tried with events of at most 21 tenants', async () => {
  await addTenants(30, 1);
  refuse(() => true);
  startHooks(api.database, config);
  const tried = () => new Set(receiver.received.map(({ body }) => JSON.parse(body).id)).size;
  await eventually('as many as it may be', tried, { is: 21 });
  for (let turn = 0; turn < 3; turn += 1) {
    const before = receiver.received.length;
    await eventually('tried again', async () => {
      await retryHooksNow(api.database);
      return receiver.received.length > before;
    });
  }
  expect(tried()).toBe(21);
});

test('hundreds of alerts of one tenant let an event of another one through, and all come, in order', async () => {
  const [noisy = '', other = ''] = await addTenants(2, 0);
  const userId = async (name: string) => String((await ask('GET', `/tenants/${name}`)).body.userId);
  const tenantId = await userId(noisy);
  await ask('PUT', '/operations-hooks/crm', { url: `${receiver.url}/crm`, types: ['*'] });
  const target = `tenant ${tenantId}`;
  const change = {
    tenantId,
    wabaId: null,
    action: 'alert.opened',
    target,
    detail: { kind: 'endpoint_failing' },
  };
  // As when an endpoint of the tenant after the other fails.
  for (let n = 0; n < 300; n += 1) await recordBy(api.database, SYSTEM, change);
  await ask('PATCH', `/tenants/${other}`, { businessName: 'Acme at last' });
  startHooks(api.database, config);
  const last = (await inFeed(other)).at(-1);
  await eventually('the other has its event', () => accepted().some(({ id }) => id === last?.id));
  const before = accepted().slice(
    0,
    accepted().findIndex(({ id }) => id === last?.id),
  );
  expect(ofTenant(noisy, before).length).toBeLessThan(15);
  const alerts = () => ofTenant(noisy, accepted()).filter(({ type }) => type === 'alert.opened').length;
  await eventually('all have come', alerts, { is: 300 });
  const sequences = ofTenant(noisy, accepted()).map(({ sequence }) => sequence);
  expect(sequences).toEqual(sequences.toSorted((a, b) => a - b));
  await eventually('nothing is held', async () => (await hook()).nextAttemptAt, { is: null });
});
