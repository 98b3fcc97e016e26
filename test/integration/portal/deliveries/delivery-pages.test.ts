import { beforeEach, expect, test } from 'vitest';
import { changeReplay, queueReplayPage } from '../../../../src/features/replays/replay-steps.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { publicDeliveryId } from '../../../../src/platform/public-ids.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { OTHER_WABA, startTestApi, type TestApi, WABA } from '../../api/api-harness.ts';
import { addDelivery } from '../delivery-fixtures.ts';
import { HOSTILE_TEXTS, liveMarkup } from '../hostile-texts.ts';
import { markupProblems } from '../markup-problems.ts';
import { addUser, type PortalBrowser, tenantOf } from '../portal-browser.ts';

const PATH = `/portal/w/${WABA}/deliveries`;
const FAILED = { status: 503, responseBody: 'down', responseHeaders: { 'retry-after': '9' } };

let api: TestApi;
let admin: PortalBrowser;
let member: PortalBrowser;
let operator: PortalBrowser;

beforeEach(async () => {
  api = await startTestApi();
  await addEndpoint(api.database, WABA, 'https://receiver.example/hook');
  await addEndpoint(api.database, OTHER_WABA, 'https://other.example/hook');
  const tenantId = await tenantOf(api.database, WABA);
  admin = await addUser(api, { email: 'admin@store.example', role: 'admin', tenantId });
  member = await addUser(api, { email: 'member@store.example', role: 'member', tenantId });
  operator = await addUser(api, { email: 'op@example.com', role: 'operator', tenantId: null });
});

const shownIds = (page: { body: string }) =>
  [...page.body.matchAll(/title="(wamid[^"]*)"/g)].map(([, id]) => id);

test('the list shows what is of the WABA, narrowed down by each filter, and the operator sees all', async () => {
  await addDelivery(api.database, { eventId: 'wamid.one', minutesAgo: 3 });
  const [failed = ''] = await addDelivery(api.database, {
    eventId: 'wamid.two',
    type: 'status',
    state: 'failed',
    error: 'the endpoint returned 503',
    attempts: [{ errorClass: 'timeout' }, FAILED],
    minutesAgo: 2,
  });
  await addDelivery(api.database, { eventId: 'wamid.other', wabaId: OTHER_WABA });
  const cases: [string, string[]][] = [
    ['', ['wamid.two', 'wamid.one']],
    ['?state=failed', ['wamid.two']],
    ['?state=dropped', []],
    ['?eventType=message', ['wamid.one']],
    ['?response=timeout', ['wamid.two']],
    ['?response=5xx', ['wamid.two']],
    ['?response=200', ['wamid.one']],
    ['?endpointId=1', ['wamid.two', 'wamid.one']],
    ['?endpointId=2', []],
    ['?id=wamid.one', ['wamid.one']],
    [`?id=${failed}`, ['wamid.two']],
    ['?id=wamid.other', []],
    ['?range=1h', ['wamid.two', 'wamid.one']],
    ['?until=2020-01-01T00:00&range=all', []],
    ['?since=2020-01-01T00:00', ['wamid.two', 'wamid.one']],
  ];
  for (const [query, expected] of cases) {
    for (const path of [PATH, `${PATH}/rows`]) {
      const page = await member.get(`${path}${query}`);
      expect([query, page.statusCode, shownIds(page)]).toEqual([query, 200, expected]);
    }
    expect(await markupProblems((await member.get(`${PATH}${query}`)).body)).toEqual([]);
  }
  const all = await operator.get('/portal/operator/deliveries');
  expect(shownIds(all).sort()).toEqual(['wamid.one', 'wamid.other', 'wamid.two']);
  const ofOther = await operator.get(`/portal/operator/deliveries?wabaId=${OTHER_WABA}`);
  expect(shownIds(ofOther)).toEqual(['wamid.other']);
  expect((await admin.get('/portal/operator/deliveries')).statusCode).toBe(403);
});

const SENSELESS = [
  'state=x',
  'eventType=x',
  'endpointId=x',
  'response=900',
  'since=yesterday',
  'id=%00',
  'cursor=x',
  'since=2026-01-02T00:00&until=2026-01-01T00:00',
];

test('filters that make no sense are explained at the form', async () => {
  for (const query of SENSELESS) {
    const page = await member.get(`${PATH}?${query}`);
    expect([query, page.statusCode, await markupProblems(page.body)]).toEqual([query, 422, []]);
    expect(page.body, query).toMatch(/class="problem"|role="alert"/);
  }
});

test('a delivery shows each attempt; addresses and workflows are for operators, signatures for nobody', async () => {
  const [id = ''] = await addDelivery(api.database, {
    eventId: 'wamid.two',
    state: 'failed',
    error: 'the endpoint returned 503',
    dataJson: '{"big":12345678901234567890.10}',
    attempts: [{ errorClass: 'dns', errorMessage: 'no such name' }, FAILED],
  });
  const page = await member.get(`${PATH}/${id}`);
  for (const text of [
    '503',
    'retry-after',
    'down',
    'webhook-id',
    'First byte',
    '12345678901234567890.10',
    'curl -i',
  ]) {
    expect(page.body).toContain(text);
  }
  // What is copied is what was signed: the bytes, not how they are shown.
  const copied = /data-copy-from="([\w-]+)"/.exec(page.body)?.[1] ?? '';
  const bytes = new RegExp(`<code id="${copied}">([^<]*)</code>`).exec(page.body)?.[1];
  const downloaded = (await member.get(`${PATH}/${id}/body`)).body;
  expect(bytes?.replaceAll('&quot;', '"')).toBe(downloaded);
  expect(page.body).not.toMatch(
    /data-copy-block[^>]*>Copy<\/button><pre[^>]*aria-label="Body \(formatted\)"/,
  );
  expect(page.body).toContain('curl -i -X POST &quot;$WEBHOOK_URL&quot;');
  expect(page.body).not.toMatch(/203\.0\.113\.7|host-1|Replay this delivery|v1,/);
  const first = await member.get(`${PATH}/${id}?attempt=1`);
  expect(first.body).toContain('does not resolve');
  expect(first.body).toContain('No response.');
  expect((await operator.get(`${PATH}/${id}`)).body).toContain('203.0.113.7');
  const body = await member.get(`${PATH}/${id}/body`);
  expect(body.headers['content-disposition']).toMatch(/^attachment; filename="evt_/);
  expect(body.body).toContain('12345678901234567890.10');
  const [other = ''] = await addDelivery(api.database, { eventId: 'wamid.other', wabaId: OTHER_WABA });
  for (const path of [`${PATH}/${other}`, `${PATH}/${other}/body`, `${PATH}/dlv_x`, `${PATH}/${id}x`]) {
    expect((await admin.get(path)).statusCode).toBe(404);
  }
});

test('a settled delivery can be replayed and a waiting one dropped, by those who may', async () => {
  const [failed = ''] = await addDelivery(api.database, {
    eventId: 'wamid.failed',
    state: 'failed',
    attempts: [FAILED],
  });
  const [waiting = ''] = await addDelivery(api.database, {
    eventId: 'wamid.waiting',
    state: 'pending',
    attempts: [FAILED],
  });
  await member.get(PATH);
  for (const path of [`${PATH}/${failed}/replay`, `${PATH}/${waiting}/drop`]) {
    expect((await member.post(path)).statusCode).toBe(403);
  }
  await admin.get(`${PATH}/${failed}`);
  expect((await admin.post(`${PATH}/${failed}/replay`)).headers.location).toBe(`/portal/w/${WABA}/replays/1`);
  expect((await admin.post(`${PATH}/${waiting}/replay`)).statusCode).toBe(422);
  expect((await admin.get(`${PATH}/${waiting}/drop`)).body).toContain('<button class="danger">Drop</button>');
  expect((await admin.post(`${PATH}/${waiting}/drop`)).headers.location).toBe(
    `${PATH}/${waiting}?done=dropped`,
  );
  expect((await admin.get(`${PATH}/${waiting}`)).body).toContain('dropped by admin@store.example');
  expect((await admin.post(`${PATH}/${waiting}/drop`)).statusCode).toBe(303);
  expect((await admin.post(`${PATH}/${failed}/drop`)).statusCode).toBe(422);
  expect((await api.database.raw('select 1 from delivery_queue')).rows).toEqual([]);
  const { rows } = await api.database.raw(`select action from audit_log where action like 'delivery.%'`);
  expect(rows).toEqual([{ action: 'delivery.dropped' }]);
});

test('a delivery that waits for its retry can be retried now, by those who may', async () => {
  const [waiting = ''] = await addDelivery(api.database, {
    eventId: 'wamid.retried',
    state: 'pending',
    attempts: [FAILED],
  });
  await api.database.raw(
    `update delivery_queue set state = 'retrying', attempts = 1, next_attempt_at = now() + interval '1 day'`,
  );
  const retry = `${PATH}/${waiting}/retry`;
  expect((await member.get(`${PATH}/${waiting}`)).body).not.toContain('Retry now');
  expect((await member.post(retry)).statusCode).toBe(403);
  expect((await admin.get(`${PATH}/${waiting}`)).body).toContain('Retry now');
  expect((await admin.post(retry)).headers.location).toBe(`${PATH}/${waiting}?done=retried`);
  const page = (await admin.get(`${PATH}/${waiting}?done=retried`)).body;
  expect(page).toContain('The next attempt is made now.');
  expect(await markupProblems(page)).toEqual([]);
  expect((await api.database.raw('select state from delivery_queue')).rows).toEqual([{ state: 'due' }]);
  await api.database.raw(`update endpoint_health set mode = 'paused'`);
  expect((await admin.get(`${PATH}/${waiting}`)).body).not.toContain('Retry now');
  const refused = await admin.post(retry);
  expect([refused.statusCode, refused.body.includes('enable it first')]).toEqual([422, true]);
  const { rows } = await api.database.raw(`select target from audit_log where action = 'delivery.retried'`);
  expect(rows).toEqual([{ target: `delivery ${waiting}` }]);
});

test('a delivery of a paused replay says that its replay is paused', async () => {
  const [failed = ''] = await addDelivery(api.database, { eventId: 'wamid.again', state: 'failed' });
  await admin.get(`${PATH}/${failed}`);
  await admin.post(`${PATH}/${failed}/replay`);
  const [endpoint] = await query<{ id: string }>(
    api.database,
    'select id from webhook_endpoints where waba_id = :waba',
    { waba: WABA },
  );
  const ids = { wabaId: WABA, replayId: '1', endpointId: endpoint?.id ?? '' };
  const [again = ''] = (await queueReplayPage(api.database, ids))?.queuedIds ?? [];
  const path = `${PATH}/${publicDeliveryId(again)}`;
  expect((await admin.get(path)).body).toContain('It waits for a free worker.');
  await changeReplay(api.database, ids, 'paused');
  expect((await admin.get(path)).body).toContain('It waits until its paused replay is resumed.');
  await changeReplay(api.database, ids, 'running');
  expect((await admin.get(path)).body).toContain('It waits for a free worker.');
});

test('what receivers and customers write is shown as text, and never makes a page large', async () => {
  for (const text of HOSTILE_TEXTS) {
    const [id = ''] = await addDelivery(api.database, {
      eventId: `wamid${text}`,
      state: 'failed',
      error: text,
      dataJson: JSON.stringify({ text }),
      attempts: [
        { status: 500, responseBody: text, responseHeaders: { [text]: text } },
        { errorClass: text, errorMessage: text },
      ],
    });
    for (const path of [PATH, `${PATH}/${id}`, `${PATH}/${id}?attempt=1`]) {
      const page = await admin.get(path);
      expect([path, page.statusCode, liveMarkup(page.body)]).toEqual([path, 200, []]);
      expect(await markupProblems(page.body)).toEqual([]);
    }
  }
  const [large = ''] = await addDelivery(api.database, {
    eventId: 'wamid.large',
    state: 'failed',
    dataJson: JSON.stringify({ text: '"'.repeat(300_000) }),
    attempts: [
      { status: 500, responseBody: '"&<'.repeat(1_300), responseHeaders: { 'x-long': '"'.repeat(15_000) } },
    ],
  });
  const page = await admin.get(`${PATH}/${large}`);
  expect(Buffer.byteLength(page.body)).toBeLessThan(100 * 1024);
  expect(page.body).toContain('bytes in all');
});

test('a delivery whose end cannot be written down is not dropped', async () => {
  const [waiting = ''] = await addDelivery(api.database, {
    eventId: 'wamid.kept',
    state: 'pending',
    attempts: [FAILED],
  });
  const refuse = `alter table audit_log add constraint refused check (action <> 'delivery.dropped') not valid`;
  await api.database.raw(refuse);
  await admin.get(`${PATH}/${waiting}`);
  expect((await admin.post(`${PATH}/${waiting}/drop`)).statusCode).toBe(500);
  await api.database.raw('alter table audit_log drop constraint refused');
  const { rows } = await api.database.raw('select count(*)::integer as n from delivery_queue');
  expect(rows).toEqual([{ n: 1 }]);
  expect((await admin.post(`${PATH}/${waiting}/drop`)).statusCode).toBe(303);
});

test('an endpoint id that cannot be one is refused beside its field', async () => {
  const answer = await operator.get('/portal/operator/deliveries?endpointId=x');
  expect(answer.statusCode).toBe(422);
  expect(answer.body).toContain('id="endpointId-problem"');
});

test('a delivery whose attempts and event are past their retention says so, and cannot be replayed', async () => {
  const [id = ''] = await addDelivery(api.database, {
    eventId: 'wamid.old',
    state: 'failed',
    attempts: [FAILED, FAILED],
  });
  await query(api.database, 'truncate attempts');
  const withoutAttempts = await admin.get(`${PATH}/${id}`);
  expect(withoutAttempts.body).toContain('2 attempts were made; requests and responses are no longer kept.');
  expect(withoutAttempts.body).toContain('Replay this delivery');
  await query(api.database, 'truncate events');
  const withoutEvent = await admin.get(`${PATH}/${id}`);
  expect(withoutEvent.statusCode).toBe(200);
  expect(withoutEvent.body).toContain('The event is no longer kept.');
  expect(withoutEvent.body).not.toContain('Replay this delivery');
  expect(await markupProblems(withoutEvent.body)).toEqual([]);
  const list = await admin.get(PATH);
  expect(list.statusCode).toBe(200);
  expect(list.body).toContain(id);
});

test('a delivery that stepped aside says so, and no page of a delivery shows credentials of its endpoint’s URL', async () => {
  await api.database.raw('update webhook_endpoints set url = :url', {
    url: 'https://receiver.example/services/geheim?token=geheim',
  });
  const [id = ''] = await addDelivery(api.database, {
    eventId: 'wamid.aside',
    state: 'pending',
    attempts: [FAILED],
  });
  await api.database.raw(`update deliveries set stepped_aside_at = now()`);
  const page = (await member.get(`${PATH}/${id}`)).body;
  expect(page).toContain('later events of its key no longer wait for it');
  expect(page).toContain('Stepped aside');
  expect(await markupProblems(page)).toEqual([]);
  for (const body of [
    page,
    (await member.get(PATH)).body,
    (await member.get(`/portal/w/${WABA}/webhooks`)).body,
  ]) {
    expect(body).not.toContain('geheim');
  }
});
