import { expect, test } from 'vitest';
import { countFailed } from '../../../../src/engine/endpoint/endpoint-failures.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { addEndpoint, freshTenant } from '../../../support/test-accounts.ts';
import { addDelivery } from '../delivery-fixtures.ts';
import { HOSTILE_TEXTS, liveMarkup } from '../hostile-texts.ts';
import { markupProblems } from '../markup-problems.ts';
import { newUser } from '../portal-browser.ts';
import {
  actions,
  add,
  admin,
  api,
  endpointsPath,
  MISTAKES,
  office,
  stored,
  useEndpointBrowser,
} from './endpoint-browser.ts';

useEndpointBrowser();

/** The states of what waits for an endpoint. */
async function queued(endpointId: string): Promise<string[]> {
  const text = 'select state from delivery_queue where endpoint_id = :endpointId';
  return (await query<{ state: string }>(api.database, text, { endpointId })).map(({ state }) => state);
}

test('every option of an endpoint can be set, comes back in the form, and goes back to its default', async () => {
  const { id } = await add({
    description: 'orders',
    eventTypes: 'order',
    phoneNumberIds: office.number,
    orderScope: 'conversation',
    retrySchedule: '5, 60 600',
    timeoutSeconds: '2.5',
    maxInFlight: '7',
    rateLimitPerSecond: '9',
    blockLimitSeconds: '3600',
    deliveryWorkflows: 'always',
    alwaysWorkflowsFor: 'payment',
    bufferSeconds: '5',
    bufferMaxSeconds: '60',
    bufferMaxMessages: '9',
    bufferTypes: 'image',
    newHeaders: 'Authorization: Bearer s3cret\nX-Shop: 1',
  });
  expect(await stored(id)).toMatchObject({
    description: 'orders',
    event_types: ['order'],
    phone_number_ids: [office.number],
    order_scope: 'conversation',
    retry_schedule_seconds: [5, 60, 600],
    timeout_ms: 2_500,
    max_in_flight: 7,
    rate_limit_per_second: 9,
    block_limit_seconds: 3_600,
    delivery_workflows: 'always',
    always_workflows_for: ['payment'],
    buffer_seconds: 5,
    buffer_max_seconds: 60,
    buffer_max_messages: 9,
    buffer_types: ['image'],
  });
  const form = await admin.get(`${endpointsPath}/${id}/edit`);
  for (const text of ['value="5, 60, 600"', 'value="2.5"', 'value="7"', 'Authorization', 'X-Shop']) {
    expect(form.body).toContain(text);
  }
  expect(form.body).not.toContain('s3cret');
  const change = { url: 'https://receiver.example/other', orderScope: 'event', removedHeaders: 'X-Shop' };
  const refused = await admin.post(`${endpointsPath}/${id}/edit`, { ...change, bufferSeconds: '5' });
  expect(refused.statusCode).toBe(422);
  expect(refused.body).toContain('Messages can be buffered only where the order scope is');
  const saved = await admin.post(`${endpointsPath}/${id}/edit`, change);
  expect([saved.statusCode, saved.headers.location]).toEqual([303, `${endpointsPath}/${id}?done=saved`]);
  expect(await stored(id)).toMatchObject({
    url: 'https://receiver.example/other',
    description: '',
    event_types: null,
    retry_schedule_seconds: null,
    timeout_ms: null,
    max_in_flight: null,
    buffer_seconds: null,
    buffer_types: null,
  });
  const page = await admin.get(`${endpointsPath}/${id}/settings`);
  expect(page.body).toContain('Authorization');
  expect(page.body).not.toContain('X-Shop');
  expect(await actions()).toEqual(['endpoint.created', 'endpoint.updated']);
});

test('forms with a mistake are refused at the field, and keep what was written', async () => {
  for (const [fields, complaint] of MISTAKES) {
    await admin.get(`${endpointsPath}/new`);
    const answer = await admin.post(endpointsPath, {
      url: 'https://receiver.example/hook',
      description: 'kept',
      ...fields,
    });
    expect([fields, answer.statusCode]).toEqual([fields, 422]);
    expect(answer.body.replaceAll('&quot;', '"')).toContain(complaint);
    expect(answer.body).toContain('class="problem"');
    if (!('description' in fields)) expect(answer.body).toContain('value="kept"');
    expect(await markupProblems(answer.body)).toEqual([]);
    const own = 'select 1 from webhook_endpoints where waba_id = :wabaId';
    expect(await query(api.database, own, { wabaId: office.wabaId })).toEqual([]);
  }
});

test('the ordering cannot change while deliveries are pending: the field says so, and how many', async () => {
  const { id } = await add();
  await addDelivery(api.database, {
    wabaId: office.wabaId,
    eventId: 'wamid.pending',
    state: 'pending',
    attempts: [],
  });
  const url = 'https://receiver.example/hook';
  const refused = await admin.post(`${endpointsPath}/${id}/edit`, { url, orderScope: 'endpoint' });
  expect(refused.statusCode).toBe(422);
  expect(refused.body).toContain('The ordering cannot change now: 1 delivery is pending');
  expect(await markupProblems(refused.body)).toEqual([]);
  expect(await stored(id)).toMatchObject({ order_scope: 'event' });
});

test('what waits for a retry is retried now, while the endpoint is enabled', async () => {
  const { id } = await add();
  expect((await admin.get(`${endpointsPath}/${id}`)).body).not.toContain('Retry now');
  await addDelivery(api.database, {
    wabaId: office.wabaId,
    eventId: 'wamid.retry',
    state: 'pending',
    attempts: [],
  });
  await execute(
    api.database,
    `update delivery_queue set state = 'retrying', attempts = 1, next_attempt_at = now() + interval '1 day'
      where endpoint_id = :id`,
    { id },
  );
  expect((await admin.get(`${endpointsPath}/${id}`)).body).toContain('Retry now');
  const retried = await admin.post(`${endpointsPath}/${id}/retry`);
  expect(retried.headers.location).toBe(`${endpointsPath}/${id}?done=retried`);
  expect((await admin.get(`${endpointsPath}/${id}?done=retried`)).body).toContain(
    'What waits for a retry is sent now',
  );
  expect(await queued(id)).toEqual(['due']);
  expect(await actions()).toEqual(['endpoint.created', 'endpoint.retried']);
  await admin.post(`${endpointsPath}/${id}/pause`);
  const refused = await admin.post(`${endpointsPath}/${id}/retry`);
  expect([refused.statusCode, refused.body.includes('enable it first')]).toEqual([422, true]);
});

test('while the endpoint is probed, its next probe is sent now', async () => {
  const { id } = await add();
  await addDelivery(api.database, {
    wabaId: office.wabaId,
    eventId: 'wamid.probe',
    state: 'pending',
    attempts: [],
  });
  await execute(
    api.database,
    `update endpoint_health set mode = 'probing', next_probe_at = now() + interval '5 minutes' where endpoint_id = :id`,
    { id },
  );
  expect((await admin.get(`${endpointsPath}/${id}`)).body).toContain('Retry now');
  const retried = await admin.post(`${endpointsPath}/${id}/retry`);
  expect(retried.headers.location).toBe(`${endpointsPath}/${id}?done=retried`);
  const probe = 'select mode, next_probe_at <= now() as "isDue" from endpoint_health where endpoint_id = :id';
  expect(await query(api.database, probe, { id })).toEqual([{ mode: 'probing', isDue: true }]);
  expect(await actions()).toEqual(['endpoint.created', 'endpoint.retried']);
});

test('pausing keeps the reason, and enabling asks what becomes of what waits', async () => {
  const { id } = await add();
  await admin.get(`${endpointsPath}/${id}`);
  const paused = await admin.post(`${endpointsPath}/${id}/pause`, { reason: 'moving house' });
  expect(paused.headers.location).toBe(`${endpointsPath}/${id}?done=paused`);
  await addDelivery(api.database, {
    wabaId: office.wabaId,
    eventId: 'wamid.waits',
    state: 'pending',
    attempts: [],
  });
  const page = await admin.get(`${endpointsPath}/${id}`);
  expect(page.body).toContain('moving house');
  expect(page.body).toContain('1 pending event');
  const undecided = await admin.post(`${endpointsPath}/${id}/enable`);
  expect([undecided.statusCode, (await stored(id)).mode]).toEqual([422, 'paused']);
  expect(undecided.body).toContain('1 delivery waits');
  const dropped = await admin.post(`${endpointsPath}/${id}/enable`, { waiting: 'drop' });
  expect(dropped.headers.location).toBe(`${endpointsPath}/${id}?done=dropped`);
  expect((await stored(id)).mode).toBe('open');
  expect(await queued(id)).toEqual([]);
  expect(await actions()).toEqual(['endpoint.created', 'endpoint.paused', 'endpoint.enabled']);
});

test('a test event that nobody could send yet says so, and its outcome when there is one', async () => {
  const { id } = await add();
  await admin.get(`${endpointsPath}/${id}`);
  const sent = await admin.post(`${endpointsPath}/${id}/test`);
  const { location } = sent.headers;
  expect(location).toMatch(/\/tests\/dlv_[0-9a-f]{32}$/);
  const waiting = await admin.get(String(location));
  expect(waiting.body).toContain('No attempt yet');
  expect(waiting.body).toContain('data-live=');
  const [delivery = ''] = await addDelivery(api.database, {
    wabaId: office.wabaId,
    eventId: 'test_99',
    type: 'test',
    state: 'failed',
    attempts: [
      { status: null, errorClass: 'tls', errorMessage: 'The TLS handshake failed (CERT_HAS_EXPIRED).' },
    ],
  });
  const failed = await admin.get(`${endpointsPath}/${id}/tests/${delivery}`);
  for (const text of ['Failed', 'CERT_HAS_EXPIRED', '83 ms', 'certificate may be expired']) {
    expect(failed.body).toContain(text);
  }
  expect(await markupProblems(failed.body)).toEqual([]);
});

test('nobody floods a server with test events: beyond 30 a minute of an endpoint none is made', async () => {
  const [{ id }, other] = [await add(), await add({ url: 'https://other.example/hook' })];
  await admin.get(`${endpointsPath}/${id}`);
  const send = async (endpointId: string) =>
    (await admin.post(`${endpointsPath}/${endpointId}/test`)).statusCode;
  for (let sent = 0; sent < 30; sent += 1) expect(await send(id)).toBe(303);
  const refused = await admin.post(`${endpointsPath}/${id}/test`);
  expect([refused.statusCode, refused.body.includes('30 test events per minute')]).toEqual([429, true]);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  expect(await send(other.id)).toBe(303);
  expect([...(await queued(id)), ...(await queued(other.id))]).toHaveLength(31);
});

test('what failed for good is on the overview and the page of the endpoint, also without an operations URL', async () => {
  const { id } = await add();
  const overview = office.path;
  expect((await admin.get(overview)).body).toContain('no failures');
  await api.database.transaction((trx) => countFailed(trx, new Map([[id, 3]])));
  const link = `deliveries?state=failed&amp;endpointId=${id}"`;
  for (const path of [overview, `${endpointsPath}/${id}`])
    expect((await admin.get(path)).body).toContain(link);
});

test('the overview spans a day, also of a WABA that has just begun, and an hour on request', async () => {
  const { id } = await add();
  const overview = async (minutesAgo: number, search = '') => {
    await api.database.raw(
      `insert into endpoint_minutes (endpoint_id, minute, successes, total_ms)
       values (:id, now() - :minutesAgo * interval '1 minute', 7, 1)`,
      { id, minutesAgo },
    );
    return (await admin.get(`${office.path}${search}`)).body;
  };
  expect(await overview(2)).toContain('Attempts per hour of the last 24 hours: 7 succeeded');
  expect(await overview(90)).toContain('Attempts per hour of the last 24 hours: 14 succeeded');
  expect(await overview(400, '?span=hour')).toContain('Attempts per 5 minutes of the last hour: 7 succeeded');
  expect(await overview(500, '?span=x')).toContain('the last 24 hours: 28 succeeded');
});

test('the overview leads on: figures are links, and the first steps show what is missing', async () => {
  const { path } = office;
  const empty = (await admin.get(path)).body;
  expect(empty).toContain(`<a class="button primary" href="${endpointsPath}/new">Add a webhook endpoint</a>`);
  const { id } = await add();
  const one = (await admin.get(path)).body;
  expect(one).toContain('Done:</span> Add a webhook endpoint');
  expect(one).toContain(`<a class="button primary" href="${endpointsPath}/${id}">Send a test event</a>`);
  expect(one).toContain(`<dt><a href="${path}/deliveries?state=pending">Pending</a></dt>`);
  const { browser: member } = await newUser(api, office.tenantId);
  expect((await member.get(path)).body).not.toContain('class="button primary"');
  await add();
  expect((await admin.get(path)).body).not.toContain('First steps');
});

test('an endpoint has its settings and its secrets on tabs of their own', async () => {
  const { id } = await add();
  const own = `${endpointsPath}/${id}`;
  for (const [end, text] of [
    ['', 'Recent deliveries'],
    ['/deliveries', 'No deliveries within seven days.'],
    ['/settings', 'Retry schedule'],
    ['/security', 'id="secret"'],
  ] as const) {
    const { body } = await admin.get(`${own}${end}`);
    expect(body).toContain(text);
    expect(body).toMatch(new RegExp(`<a href="${own}${end}" aria-current="page">`));
    expect(await markupProblems(body)).toEqual([]);
  }
  expect((await admin.get(own)).body).not.toMatch(/Rotate the secret|Retry schedule/);
});

test('an endpoint is disabled with a reason and enabled again', async () => {
  const { id } = await add();
  expect((await admin.get(`${endpointsPath}/${id}`)).body).toContain('Disable the endpoint');
  const disabled = await admin.post(`${endpointsPath}/${id}/disable`, { reason: 'out of order' });
  expect(disabled.headers.location).toBe(`${endpointsPath}/${id}?done=disabled`);
  expect(await stored(id)).toMatchObject({ mode: 'disabled', mode_reason: 'out of order' });
  expect((await admin.get(`${endpointsPath}/${id}`)).body).not.toContain('Disable the endpoint');
  await admin.post(`${endpointsPath}/${id}/enable`, {});
  expect(await actions()).toEqual(['endpoint.created', 'endpoint.disabled', 'endpoint.enabled']);
});

test('an endpoint is deleted from a page that says what is lost', async () => {
  const { id } = await add();
  await addDelivery(api.database, {
    wabaId: office.wabaId,
    eventId: 'wamid.waits',
    state: 'pending',
    attempts: [],
  });
  expect((await admin.get(`${endpointsPath}/${id}/delete`)).body).toContain(
    '<strong>1</strong> pending event is',
  );
  const gone = await admin.post(`${endpointsPath}/${id}/delete`);
  expect(gone.headers.location).toBe(`${endpointsPath}?done=deleted`);
  expect((await admin.get(`${endpointsPath}/${id}`)).statusCode).toBe(404);
  expect((await admin.get(endpointsPath)).body).toContain('No endpoint yet');
});

test('members see everything and get no button, nor a way around it; other tenants see nothing', async () => {
  const { id } = await add({ url: 'https://receiver.example/geheim', description: '' });
  await admin.post(`${endpointsPath}/alerts`, { url: 'https://ops.example/services/geheim' });
  for (const path of [endpointsPath, `${endpointsPath}/${id}`])
    expect((await admin.get(path)).body).toContain('/geheim');
  const { wabaId: otherWabaId } = await freshTenant(api.database);
  const other = await addEndpoint(api.database, otherWabaId, 'https://other.example/');
  const { browser: member } = await newUser(api, office.tenantId);
  const own = ['', '/deliveries', '/settings', '/security'].map((end) => `${endpointsPath}/${id}${end}`);
  for (const path of [endpointsPath, ...own, `${endpointsPath}/alerts`]) {
    const page = await member.get(path);
    const forms = page.body.match(/<form method="post" action="([^"]+)"/g);
    expect([page.statusCode, forms]).toEqual([200, ['<form method="post" action="/portal/sign-out"']]);
    expect(page.body).not.toMatch(/\/(?:new|edit|delete)"/);
    // A path can be a secret, as those of many chat services are.
    expect(page.body).not.toContain('geheim');
  }
  for (const path of ['/new', `/${id}/edit`, `/${id}/delete`, '/check-url?url=x']) {
    expect([path, (await member.get(`${endpointsPath}${path}`)).statusCode]).toEqual([path, 403]);
  }
  await member.get(endpointsPath);
  for (const action of ['pause', 'disable', 'enable', 'test', 'rotate-secret', 'delete', 'edit']) {
    expect([action, (await member.post(`${endpointsPath}/${id}/${action}`)).statusCode]).toEqual([
      action,
      403,
    ]);
  }
  for (const path of [
    '',
    '/settings',
    '/security',
    '/deliveries',
    '/edit',
    '/delete',
    '/tests/dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5061',
  ]) {
    expect((await admin.get(`${endpointsPath}/${other.id}${path}`)).statusCode).toBe(404);
  }
  expect((await admin.get(`/portal/w/${otherWabaId}/endpoints/${other.id}`)).statusCode).toBe(404);
});

test('hostile texts in descriptions and reasons are shown as text', async () => {
  for (const text of HOSTILE_TEXTS) {
    const { id } = await add({ description: text });
    await admin.post(`${endpointsPath}/${id}/pause`, { reason: text });
    for (const path of [
      endpointsPath,
      `${endpointsPath}/${id}`,
      `${endpointsPath}/${id}/settings`,
      `${endpointsPath}/${id}/security`,
      `${endpointsPath}/${id}/edit`,
      `${endpointsPath}/${id}/delete`,
    ]) {
      const page = await admin.get(path);
      expect([path, page.statusCode, liveMarkup(page.body)]).toEqual([path, 200, []]);
      expect(await markupProblems(page.body)).toEqual([]);
    }
  }
  await admin.get(`${endpointsPath}/new`);
  for (const text of HOSTILE_TEXTS) {
    const fields = { url: text, newHeaders: text, retrySchedule: text, check: '1' };
    const page = await admin.post(endpointsPath, fields);
    expect([page.statusCode, liveMarkup(page.body)]).toEqual([200, []]);
  }
});
