import { beforeEach, expect, test } from 'vitest';
import { queueReplayPage } from '../../../../src/features/replays/replay-steps.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { OTHER_WABA, startTestApi, type TestApi, WABA } from '../../api/api-harness.ts';
import { addDelivery } from '../delivery-fixtures.ts';
import { HOSTILE_TEXTS, liveMarkup } from '../hostile-texts.ts';
import { markupProblems } from '../markup-problems.ts';
import { addUser, type PortalBrowser, tenantOf } from '../portal-browser.ts';

const PATH = `/portal/w/${WABA}/replays`;
const FILTER = { by: 'filter', states: 'failed' };

let api: TestApi;
let admin: PortalBrowser;
let failed: string;

beforeEach(async () => {
  api = await startTestApi();
  await addEndpoint(api.database, WABA, 'https://receiver.example/hook');
  const tenantId = await tenantOf(api.database, WABA);
  admin = await addUser(api, { email: 'admin@store.example', role: 'admin', tenantId });
  [failed = ''] = await addDelivery(api.database, {
    eventId: 'wamid.failed',
    state: 'failed',
    attempts: [{ status: 503 }],
  });
  await addDelivery(api.database, { eventId: 'wamid.fine' });
  await admin.get(`${PATH}/new`);
});

test('counting sends nothing and starts nothing; what is counted is what starts', async () => {
  const counted = await admin.post(`${PATH}/new`, FILTER);
  expect([counted.statusCode, counted.body.includes('Send 1 event again')]).toEqual([200, true]);
  expect((await api.database.raw('select 1 from replays')).rows).toEqual([]);
  const again = await admin.post(`${PATH}/new`, { ...FILTER, change: '1' });
  expect(again.body).toMatch(/value="failed" checked/);
  const started = await admin.post(PATH, FILTER);
  expect(started.headers.location).toBe(`${PATH}/1`);
  const page = await admin.get(`${PATH}/1`);
  for (const text of ['Running', 'admin@store.example', 'data-live=']) expect(page.body).toContain(text);
  expect(await markupProblems(page.body)).toEqual([]);
  expect((await admin.get(`${PATH}/1/progress`)).body).toMatch(/^<div class="card">/);
  for (const [action, state] of [
    ['pause', 'Paused'],
    ['resume', 'Running'],
    ['cancel', 'Cancelled'],
  ]) {
    expect((await admin.post(`${PATH}/1/${action}`)).headers.location).toBe(`${PATH}/1?done=${action}`);
    expect((await admin.get(`${PATH}/1`)).body).toContain(state);
  }
  expect((await admin.post(`${PATH}/1/pause`)).statusCode).toBe(422);
  expect((await admin.get(PATH)).body).toContain('Cancelled');
});

test('a replay whose deliveries are pending is being sent, and is done when they are settled', async () => {
  const { database } = api;
  await admin.post(PATH, FILTER);
  const { rows } = await database.raw('select id from webhook_endpoints where waba_id = :waba', {
    waba: WABA,
  });
  const ids = { wabaId: WABA, replayId: '1', endpointId: rows[0].id };
  await queueReplayPage(database, ids);
  await database.raw(`update replays set state = 'done' where id = 1`);
  const card = async () => (await admin.get(`${PATH}/1/progress`)).body.replaceAll(/<[^>]*>/g, '');
  expect(await card()).toMatch(/Sending All events are queued; some are still pending/);
  await database.raw(`update deliveries set state = 'delivered', finished_at = now() where replay_id = 1`);
  expect(await card()).toMatch(/Done All deliveries are settled/);
});

test('a list of ids is counted with what is passed over, and unknown ones are refused', async () => {
  const [open = ''] = await addDelivery(api.database, {
    eventId: 'wamid.open',
    state: 'pending',
    attempts: [],
  });
  const counted = await admin.post(`${PATH}/new`, { by: 'ids', ids: `${failed}\n${open}` });
  expect(counted.body).toContain('1 still pending');
  expect(counted.body).toContain('Send 1 event again');
  const ids = 'dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5061';
  expect((await admin.post(`${PATH}/new`, { by: 'ids', ids })).statusCode).toBe(422);
});

const SENSELESS: Record<string, string>[] = [
  { by: 'filter' },
  { by: 'ids', ids: '' },
  { ...FILTER, from: 'yesterday' },
  { ...FILTER, endpointId: '999' },
  { ...FILTER, eventTypes: 'x' },
  { by: 'filter', states: 'pending' },
];

test('selections that make no sense are explained at the form', async () => {
  for (const fields of SENSELESS) {
    const page = await admin.post(`${PATH}/new`, fields);
    expect([fields, page.statusCode, await markupProblems(page.body)]).toEqual([fields, 422, []]);
    expect(page.body, JSON.stringify(fields)).toMatch(/role="alert"/);
  }
});

test('members watch, other tenants see nothing, hostile texts are text', async () => {
  await admin.post(PATH, FILTER);
  const tenantId = await tenantOf(api.database, WABA);
  const member = await addUser(api, { email: 'member@store.example', role: 'member', tenantId });
  const page = await member.get(`${PATH}/1`);
  expect([page.statusCode, page.body.includes('Cancel the replay')]).toEqual([200, false]);
  expect((await member.get(`${PATH}/new`)).statusCode).toBe(403);
  for (const path of ['/new', '', '/1/cancel'])
    expect((await member.post(`${PATH}${path}`)).statusCode).toBe(403);
  const stranger = await addUser(api, {
    email: 'x@other.example',
    role: 'admin',
    tenantId: await tenantOf(api.database, OTHER_WABA),
  });
  for (const path of [`/portal/w/${OTHER_WABA}/replays/1`, `${PATH}/1`, PATH]) {
    expect((await stranger.get(path)).statusCode).toBe(404);
  }
  for (const text of HOSTILE_TEXTS) {
    const shown = await admin.post(`${PATH}/new`, {
      by: 'ids',
      ids: text,
      from: text,
      to: text,
      endpointId: text,
    });
    expect([shown.statusCode, liveMarkup(shown.body)]).toEqual([422, []]);
  }
});
