import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findEventsForOperator } from '../../../src/features/delivery-log/commands/find-command.ts';
import { searchDeliveries } from '../../../src/features/delivery-log/delivery-search.ts';
import { findObjects } from '../../../src/features/delivery-log/find-objects.ts';
import { recordChange } from '../../../src/platform/audit/audit.ts';
import { type Bindings, execute, query } from '../../../src/platform/postgres/sql.ts';
import { reportWorker } from '../../../src/platform/postgres/worker-processes.ts';
import {
  PUBLIC_ID_PREFIXES,
  publicAlertId,
  publicDeliveryId,
  publicEventId,
  publicMediaId,
  uuidV7,
} from '../../../src/platform/public-ids.ts';
import { addAccountObjects, spreadIds } from '../api/account-objects.ts';
import { NUMBER, OTHER_WABA, startTestApi, type TestApi, WABA } from '../api/api-harness.ts';
import { liveIn } from '../portal/lived-in.ts';
import type { PortalBrowser } from '../portal/portal-browser.ts';

const HISTORIES = new URL('../../fixtures/histories/', import.meta.url);
const REQUEST_ID = 'req_0123456789abcdef01234567';

let api: TestApi;
let operator: PortalBrowser;
let member: PortalBrowser;
const closes: (() => Promise<void>)[] = [];

beforeAll(async () => {
  api = await startTestApi(undefined, (close) => closes.push(close));
  await spreadIds(api.database);
  ({ operator, member } = await liveIn(api));
  await addAccountObjects(api.database, { wabaId: WABA, phoneNumberId: NUMBER });
  const alert = `insert into alerts (id, kind, tenant_id, waba_id, subject, reason)
                 select :uuidV7, 'endpoint_failing', tenant_id, waba_id, '1', 'it failed' from wabas where waba_id = :waba`;
  await execute(api.database, alert, { uuidV7: uuidV7(Date.now()), waba: WABA });
  const notice = `insert into alert_notices (id, waba_id, alert, body) values (:uuidV7, :waba, 'failing', '{}')`;
  await execute(api.database, `delete from alert_notices`);
  await execute(api.database, notice, { uuidV7: uuidV7(Date.now()), waba: WABA });
  const keyActor = { name: 'API key 1', requestId: REQUEST_ID, ip: null };
  const change = { wabaId: WABA, action: 'endpoint.paused', target: 'endpoint 7' };
  await recordChange(api.database, keyActor, change);
  // Orders are counted from 1 within each tenant; here no number is used twice.
  await execute(api.database, 'update orders set number = 7000000 + id');
  await reportWorker(api.database, 'host-1:17', { attempts: 0, withRun: 0 });
  const mail = "insert into mails (id, kind, recipient) values (:uuidV7, 'alerts', 'a@store.example')";
  await execute(api.database, mail, { uuidV7: uuidV7(Date.now()) });
});
afterAll(async () => {
  for (const close of closes) await close();
});

/** What each table's rows are called; `shownId` where an id is not shown as it is stored. */
const KINDS: Record<string, { kind: string; shownId?: (uuid: string) => string; isOperators?: true }> = {
  messages: { kind: 'message' },
  conversations: { kind: 'conversation' },
  contacts: { kind: 'customer' },
  orders: { kind: 'order' },
  webhook_endpoints: { kind: 'endpoint' },
  replays: { kind: 'replay' },
  broadcasts: { kind: 'broadcast' },
  erasures: { kind: 'erasure' },
  api_keys: { kind: 'API key' },
  api_key_requests: { kind: 'key request' },
  audit_log: { kind: 'audit entry' },
  media_uploads: { kind: 'upload', shownId: publicMediaId },
  alerts: { kind: 'alert', shownId: publicAlertId },
  alert_notices: { kind: 'webhook of an alert', shownId: publicAlertId },
  tenants: { kind: 'tenant', isOperators: true },
  setup_links: { kind: 'set-up link', shownId: (id) => `sl_${id}`, isOperators: true },
  users: { kind: 'user', isOperators: true },
  invitations: { kind: 'invitation', isOperators: true },
  mails: { kind: 'mail', isOperators: true },
  worker_processes: { kind: 'worker process', isOperators: true },
};

/** Tables whose ids lead to deliveries, or are shown nowhere, with the reason. */
const OTHERS: Record<string, string> = {
  events: 'evt_: leads to its deliveries',
  deliveries: 'dlv_: leads to itself',
  history_pieces: 'not handed out: rows that wait for a minute',
  usage_changes: 'not handed out: rows that wait for a minute',
  endpoint_changes: 'not handed out: rows that wait for the alert keeper',
  inbox: 'a body is counted; its id is in the log only',
  user_sessions: "in the user's own list only",
  user_notices: 'shown once, at sign-in',
  portal_links: 'ps_: ends its session, by the program that has it',
  opt_outs: 'found by its customer',
  broadcast_recipients: 'not handed out: of its broadcast, by its phone number',
  platform_keys: 'an operator reads it from the list of platform keys',
  schema_migrations: 'the name is shown',
};

async function firstOf<Row>(sql: string, bindings: Bindings = {}): Promise<Row> {
  const [row] = await query<Row>(api.database, sql, bindings);
  if (row === undefined) throw new Error(`no row: ${sql}`);
  return row;
}

async function firstId(from: string): Promise<string> {
  return (
    await firstOf<{ id: string }>(`select cast(o.id as text) as id from ${from} o order by o.id limit 1`)
  ).id;
}

/** The rows of a table that are of the WABA. */
function own(table: string): string {
  return `(select id from ${table} where waba_id = '${WABA}')`;
}

/** Every id that is handed out, with the name of what it must lead to. */
async function handedOut(): Promise<{ id: string; kind: string; isOperators?: true }[]> {
  const ofTables = Object.entries(KINDS).map(async ([table, { shownId, ...rest }]) => {
    const id = await firstId(rest.isOperators ? table : own(table));
    return { id: shownId?.(id) ?? id, ...rest };
  });
  const message = await firstOf<{ upstreamId: string }>(
    'select upstream_id as "upstreamId" from messages where waba_id = :waba and upstream_id is not null limit 1',
    { waba: WABA },
  );
  const { number } = await firstOf<{ number: string }>(
    'select number from orders where waba_id = :waba limit 1',
    { waba: WABA },
  );
  const worker = await firstId('worker_processes');
  return [
    ...(await Promise.all(ofTables)),
    { id: `ORD-${number}`, kind: 'order' },
    { id: number, kind: 'order' },
    { id: `delivery-session/${worker}`, kind: 'worker process', isOperators: true },
    { id: `delivery-session/${worker}/${randomUUID()}`, kind: 'worker process', isOperators: true },
    { id: message.upstreamId, kind: 'message' },
    { id: REQUEST_ID, kind: 'audit entry' },
    { id: `payment-of-${WABA}`, kind: 'payment' },
    { id: WABA, kind: 'WABA' },
    { id: NUMBER, kind: 'phone number' },
    { id: `endpoint/${await firstId(own('webhook_endpoints'))}`, kind: 'endpoint' },
    { id: `send/${await firstId(own('messages'))}`, kind: 'message' },
    { id: `mail/${await firstId('mails')}`, kind: 'mail', isOperators: true },
  ];
}

/** What the search of a list of deliveries shows, scripts and all left out. */
async function searched(browser: PortalBrowser, path: string, id: string): Promise<string> {
  await browser.get(path);
  const { headers } = await browser.post(`${path}/search`, { id });
  return (await browser.get(String(headers.location))).body;
}

const ALL = '/portal/operator/deliveries';
const OWN = `/portal/w/${WABA}/deliveries`;

test('every table with ids is one that find knows, or has a reason', async () => {
  const tables = await query<{ name: string }>(
    api.database,
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'id'
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`,
  );
  const known = [...Object.keys(KINDS), ...Object.keys(OTHERS)].sort();
  expect(tables.map(({ name }) => name).sort()).toEqual(known);
});

test('find takes every id that is handed out, and a tenant finds its own only', async () => {
  for (const { id, kind, isOperators } of await handedOut()) {
    const found = await findObjects(api.database, null, id);
    expect(
      found.map((one) => one.kind),
      id,
    ).toContain(kind);
    const kinds = async (wabaId: string) =>
      (await findObjects(api.database, wabaId, id)).map((one) => one.kind);
    expect(await kinds(WABA), id).toEqual(isOperators ? [] : expect.arrayContaining([kind]));
    expect(await kinds(OTHER_WABA), id).toEqual([]);
  }
});

test('every workflow has an id that leads to its object, or a reason why not', async () => {
  // Every workflow has a recorded history, which has the id that the code gave it.
  const recorded = readdirSync(HISTORIES).map((name) => readFileSync(new URL(name, HISTORIES), 'utf8'));
  const prefixes = new Set(recorded.map((text) => JSON.parse(text).workflowId.split('/')[0]));
  const idOf: Record<string, [kind: string, id: () => Promise<string>]> = {
    'api-key-request': ['key request', () => firstId('api_key_requests')],
    'delivery-session': ['worker process', () => firstId('worker_processes')],
    endpoint: ['endpoint', () => firstId('webhook_endpoints')],
    'endpoint-alert': ['webhook of an alert', () => firstId('alert_notices')],
    eraseConversation: ['conversation', () => firstId('conversations')],
    eraseCustomer: ['customer', () => firstId('contacts')],
    eraseTenant: ['tenant', () => firstId('tenants')],
    eraseUser: ['user', () => firstId('users')],
    eraseWaba: ['WABA', async () => WABA],
    mail: ['mail', () => firstId('mails')],
    media: ['message', () => firstId('messages')],
    order: ['order', () => firstId('orders')],
    broadcast: ['broadcast', () => firstId('broadcasts')],
    replay: ['replay', () => firstId('replays')],
    send: ['message', () => firstId('messages')],
    scheduled: ['phone number', async () => `${NUMBER}/2026-11-28T09:00:00.000Z`],
    setUp: ['set-up link', async () => `sl_${await firstId('setup_links')}`],
    'waba-numbers': ['WABA', async () => WABA],
  };
  for (const [prefix, [kind, id]] of Object.entries(idOf)) {
    const found = await findObjects(api.database, null, `${prefix}/${await id()}`);
    expect(
      found.map((one) => one.kind),
      prefix,
    ).toEqual([kind]);
  }
  const { id, endpointId } = await firstOf<{ id: string; endpointId: string }>(
    'select id, endpoint_id as "endpointId" from deliveries limit 1',
  );
  const ofDelivery = `delivery/${endpointId}/${publicDeliveryId(id)}`;
  expect(await findEventsForOperator(api.database, ofDelivery, 5)).toHaveLength(1);
  const others = ['delivery', 'phone-numbers-daily'];
  expect([...prefixes].sort()).toEqual([...Object.keys(idOf), ...others].sort());
});

test('a tenant finds its payment although a hundred others use the same reference', async () => {
  const many = `insert into wabas (waba_id, tenant_id)
                select '98' || lpad(n::text, 13, '0'), tenant_id from generate_series(1, 150) as n, wabas where waba_id = :waba`;
  await execute(api.database, many, { waba: WABA });
  const reports = `insert into payment_reports select (jsonb_populate_record(p, jsonb_build_object('waba_id', w.waba_id, 'event_uuid', gen_random_uuid()))).*
                     from payment_reports p, wabas w where p.waba_id = :waba and w.waba_id like '980%'`;
  await execute(api.database, reports, { waba: WABA });
  expect(await findObjects(api.database, WABA, `payment-of-${WABA}`)).toMatchObject([{ kind: 'payment' }]);
});

test('every public prefix leads to something', async () => {
  const idOf: Record<(typeof PUBLIC_ID_PREFIXES)[number], () => Promise<string>> = {
    evt: async () => publicEventId(await firstId('(select event_uuid as id from deliveries)')),
    dlv: async () => publicDeliveryId(await firstId('deliveries')),
    med: async () => publicMediaId(await firstId('media_uploads')),
    alr: async () => publicAlertId(await firstId('alerts')),
  };
  for (const prefix of PUBLIC_ID_PREFIXES) {
    const id = await idOf[prefix]();
    expect(id.startsWith(`${prefix}_`), id).toBe(true);
    const { deliveries } = await searchDeliveries(api, null, { id }, { before: null, limit: 5 });
    const events = await findEventsForOperator(api.database, id, 5);
    const objects = await findObjects(api.database, null, id);
    expect(Math.min(deliveries.length, events.length) + objects.length, id).toBeGreaterThan(0);
  }
});

test('the search of the portal links to them, and each link leads to a page', async () => {
  for (const { id, kind, isOperators } of await handedOut()) {
    const [browser, path] = isOperators ? [operator, ALL] : [member, OWN];
    const body = await searched(browser, path, id);
    const [, links = ''] = /<section class="found-objects">(.*?)<\/section>/s.exec(body) ?? [];
    expect(links, `${kind} ${id}`).toContain(kind);
    for (const [, href = ''] of links.matchAll(/href="([^"#]+)/g))
      expect((await browser.get(href.replaceAll('&amp;', '&'))).statusCode, `${kind} ${href}`).toBe(200);
  }
});

test('what has no id of ours shows no other objects', async () => {
  expect(await searched(member, OWN, 'wamid.nothing')).not.toContain('found-objects');
  expect(await findObjects(api.database, null, "7'; drop table messages")).toEqual([]);
});
