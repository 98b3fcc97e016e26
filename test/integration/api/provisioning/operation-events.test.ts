import { expect, test } from 'vitest';
import { renameTenant } from '../../../../src/features/accounts/accounts.ts';
import { queryColumn } from '../../../../src/platform/postgres/sql.ts';
import { apiOfFile } from '../api-harness.ts';
import { fresh, type PlatformClient, platformClient } from './platform-client.ts';

const api = apiOfFile();

type Event = {
  id: string;
  type: string;
  sequence: number;
  tenant: { userId: number; externalId: string | null } | null;
  wabaId: string | null;
  actor: string;
  data: Record<string, unknown>;
};

type Page = { body: { data: Event[]; hasMore: boolean; nextCursor: string } };

/** Reads on from a cursor to the end; returns the events and where to go on. */
async function readOn(
  ask: PlatformClient,
  cursor: string | null,
  query = '',
): Promise<{ events: Event[]; cursor: string }> {
  const events: Event[] = [];
  for (let at = cursor; ; ) {
    const { body }: Page = await ask(
      'GET',
      `/operation-events?limit=3${query}${at === null ? '' : `&cursor=${at}`}`,
    );
    events.push(...body.data);
    at = body.nextCursor;
    if (!body.hasMore) return { events, cursor: at };
  }
}

type Mirror = { state: 'active' | 'suspended'; wabas: Set<string>; keys: Map<string, string> };

/** What a program that follows the feed has of the installation. */
function replay(events: readonly Event[]): Map<number, Mirror> {
  const tenants = new Map<number, Mirror>();
  for (const { type, tenant, wabaId, data } of events) {
    if (tenant === null) continue;
    const { userId } = tenant;
    if (type === 'tenant.created')
      tenants.set(userId, { state: 'active', wabas: new Set(), keys: new Map() });
    const mirror = tenants.get(userId);
    if (mirror === undefined) continue;
    if (type === 'tenant.suspended' || type === 'tenant.resumed')
      mirror.state = type === 'tenant.resumed' ? 'active' : 'suspended';
    if (type === 'tenant.removed') tenants.delete(userId);
    if (type === 'waba.saved') mirror.wabas.add(String(wabaId));
    if (type === 'waba.removed') {
      mirror.wabas.delete(String(wabaId));
      for (const [key, ofWaba] of mirror.keys) if (ofWaba === wabaId) mirror.keys.delete(key);
    }
    if (type === 'key.created') mirror.keys.set(String(data.keyId), String(wabaId));
    if (type === 'key.revoked') mirror.keys.delete(String(data.keyId));
  }
  return tenants;
}

test('who reads on while ten programs change things has every event once, in one order, and what the tables have', async () => {
  const ask = await platformClient(api);
  const start = await readOn(ask, null);
  let isOver = false;
  const seen: Event[] = [];
  const reader = (async () => {
    let { cursor } = start;
    for (let isLast = false; !isLast; ) {
      isLast = isOver;
      const turn = await readOn(ask, cursor);
      seen.push(...turn.events);
      cursor = turn.cursor;
    }
  })();
  const program = async (turn: number) => {
    const { name, wabaId } = fresh();
    const tenant = `/tenants/${name}`;
    const key = `${tenant}/wabas/${wabaId}/keys/k`;
    await ask('PUT', tenant, { businessName: 'Acme' });
    await ask('PUT', `${tenant}/wabas/${wabaId}`, {});
    await ask('PUT', key, { name: 'x', scopes: ['send'] });
    if (turn % 2 === 0) await ask('PATCH', tenant, { state: 'suspended' });
    if (turn % 3 === 0) await ask('DELETE', key);
    if (turn % 4 === 0) await ask('PATCH', tenant, { state: 'active' });
    if (turn % 5 === 1) await ask('DELETE', `${tenant}/wabas/${wabaId}`);
    if (turn % 5 === 2) await ask('DELETE', tenant, { confirm: name });
  };
  await Promise.all(Array.from({ length: 10 }, (_, turn) => program(turn)));
  isOver = true;
  await reader;
  const { events: again } = await readOn(ask, start.cursor);
  expect(seen.map(({ id }) => id)).toEqual(again.map(({ id }) => id));
  const sequences = seen.map(({ sequence }) => sequence);
  expect(sequences).toEqual([...new Set(sequences)].sort((a, b) => a - b));
  const mirror = replay(seen);
  expect(mirror.size).toBe(8);
  for (const [userId, { state, wabas, keys }] of mirror) {
    const [suspended] = await queryColumn(
      api.database,
      'select suspended_at is not null from tenants where id = :userId',
      { userId },
    );
    expect(state).toBe(suspended ? 'suspended' : 'active');
    const ofTenant = 'select waba_id from wabas where tenant_id = :userId and removed_at is null';
    expect([...wabas]).toEqual(await queryColumn(api.database, ofTenant, { userId }));
    const valid = `select k.id from api_keys k join wabas w using (waba_id)
                    where w.tenant_id = :userId and w.removed_at is null and k.revoked_at is null`;
    expect([...keys.keys()]).toEqual(await queryColumn(api.database, valid, { userId }));
  }
});

test('a change that is undone is no event', async () => {
  const ask = await platformClient(api);
  const [one, other] = [fresh().name, fresh().name];
  for (const name of [one, other]) await ask('PUT', `/tenants/${name}`, { businessName: 'Acme' });
  const { cursor } = await readOn(ask, null);
  expect((await ask('PATCH', `/tenants/${one}`, { businessName: 'Bolt', newExternalId: other })).status).toBe(
    409,
  );
  expect((await readOn(ask, cursor)).events).toEqual([]);
  await ask('PATCH', `/tenants/${one}`, { businessName: 'Bolt' });
  expect((await readOn(ask, cursor)).events).toMatchObject([
    { type: 'tenant.updated', tenant: { externalId: one } },
  ]);
});

test('events are chosen by type and tenant, and an unknown type is refused', async () => {
  const ask = await platformClient(api);
  const { name, wabaId } = fresh();
  await ask('PUT', `/tenants/${name}`, { businessName: 'Acme' });
  await ask('PUT', `/tenants/${name}/wabas/${wabaId}`, {});
  await ask('PUT', `/tenants/${name}/wabas/${wabaId}/keys/k`, { name: 'x', scopes: ['send'] });
  const types = async (query: string) =>
    (await readOn(ask, null, `&tenant=${name}${query}`)).events.map(({ type }) => type);
  expect(await types('')).toEqual(['tenant.created', 'tenant.updated', 'waba.saved', 'key.created']);
  expect(await types('&types=tenant.*')).toEqual(['tenant.created', 'tenant.updated']);
  expect(await types('&types=waba.saved,key.*')).toEqual(['waba.saved', 'key.created']);
  for (const wrong of ['gone', 'key.', '*.created', 't*', '']) {
    const { status, body } = await ask('GET', `/operation-events?types=${wrong}`);
    expect([wrong, status, body.error?.param]).toEqual([wrong, 400, 'types']);
  }
  expect((await ask('GET', '/operation-events?tenant=nobody')).status).toBe(404);
});

test('events hold no names, e-mail addresses, URLs and reasons that somebody wrote', async () => {
  const ask = await platformClient(api);
  const { name, wabaId } = fresh();
  const { userId } = (await ask('PUT', `/tenants/${name}`, { businessName: 'Secret Business' })).body;
  const path = `/tenants/${name}/wabas/${wabaId}`;
  await ask('PUT', path, { accessToken: 'EAAG-secret' });
  await ask('PUT', `${path}/keys/k`, { name: 'secret purpose', scopes: ['send'] });
  await ask('PUT', `${path}/endpoints/crm`, { url: 'https://93.184.216.34/secret-path' });
  await ask('PATCH', `/tenants/${name}`, { state: 'suspended', suspendReason: 'secret reason' });
  const asha = { name: 'asha@store.example', userId: '7', requestId: null, ip: '203.0.113.7' };
  await renameTenant({ database: api.database, actor: asha }, String(userId), 'Secret Name');
  const { events } = await readOn(ask, null, `&tenant=${name}`);
  expect(events.map(({ type }) => type)).toContain('endpoint.created');
  const text = JSON.stringify(events);
  for (const secret of [/secret/i, '@', 'EAAG', '93.184', '203.0.113']) expect(text).not.toMatch(secret);
  expect(events.at(-1)?.actor).toBe('user 7');
});
