import { expect, test } from 'vitest';
import { noteTemplates } from '../../../../src/features/accounts/templates.ts';
import { noteProblems } from '../../../../src/features/accounts/upstream-problems.ts';
import { noteOptOut } from '../../../../src/features/customers/tenant-opt-outs.ts';
import { createKey } from '../../../../src/features/keys/api-keys.ts';
import { stepBroadcast } from '../../../../src/features/messages/broadcasts/broadcast-steps.ts';
import {
  lockBroadcast,
  lockBroadcastsOf,
} from '../../../../src/features/messages/broadcasts/broadcast-store.ts';
import { broadcastOf } from '../../../../src/features/messages/broadcasts/broadcasts.ts';
import { pausedForToken } from '../../../../src/features/messages/broadcasts/pause-for-token.ts';
import { pauseItself } from '../../../../src/features/messages/broadcasts/switch-broadcast.ts';
import { listPausedBroadcasts } from '../../../../src/features/messages/paused-broadcasts.ts';
import { takeSendTurn } from '../../../../src/features/messages/send/outbound-messages.ts';
import { heldBySchedule } from '../../../../src/features/messages/send/scheduled-turn.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { query, queryColumn } from '../../../../src/platform/postgres/sql.ts';
import { testSecretBox } from '../../../support/test-accounts.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { askApi } from '../send/ask-api.ts';
import { sendingStackOfFile } from '../send/sending-stack.ts';
import { BROADCASTS, broadcastCalls, people, WHOLE_PASS } from './broadcast-calls.ts';

const stack = sendingStackOfFile();
const calls = () => broadcastCalls(stack);

const stateIs = (id: string, state: string) =>
  eventually(`it is ${state}`, async () => (await calls().get(id)).state, { is: state });
const sentTo = async () => (await stack.sent()).map(({ body }) => String((body as { to: string }).to));
/** The turns of the number's broadcasts are so far away that their messages are left to their workflows. */
const holdBackBroadcasts = () =>
  query(
    stack.database,
    `insert into send_pacing (phone_number_id, recipient, free_at) values (:number, '*', now() + interval '30 seconds')`,
    { number: stack.number },
  );
const codeOf = ({ status, body }: { status: number; body: { error?: { code: string } } }) => [
  status,
  body.error?.code,
];

test('each recipient gets one message, with its own parameters, and each line has its answer', async () => {
  const { create, add, verb, get, call, setPace } = calls();
  await setPace(1_000);
  const id = await create();
  const [asha, ben] = people(2);
  const lines = [
    { ...asha, ref: 'a' },
    { ...ben, parameters: ['Ben'] },
    { ...asha, to: `+${asha?.to}` },
    { to: 'nobody' },
    { to: 'US.13491208655302741918', parameters: ['Eve'] },
  ];
  const first = await add(id, lines);
  expect(first.body).toMatchObject({ added: 3, duplicate: 1, invalid: 1 });
  expect(first.body.lines.map(({ result }: { result: string }) => result)).toEqual([
    'added',
    'added',
    'duplicate',
    'invalid',
    'added',
  ]);
  expect(first.body.lines[3].param).toBe('recipients/3/to');
  expect((await add(id, lines)).body).toMatchObject({ added: 0, duplicate: 4, invalid: 1 });
  expect(await stack.sendRequests()).toEqual([]);
  expect((await verb(id, 'start')).body).toMatchObject({ state: 'running', recipients: 3 });
  expect((await verb(id, 'start')).status).toBe(200);
  await stateIs(id, 'done');
  expect((await sentTo()).toSorted()).toEqual([asha?.to, ben?.to, undefined].map(String).toSorted());
  const bodies = (await stack.sent()).map(({ body }) => body as { to?: string; template: object });
  expect(bodies.find(({ to }) => to === ben?.to)?.template).toEqual({
    name: 'winter_sale',
    language: { code: 'en_US' },
    components: [{ type: 'body', parameters: [{ type: 'text', text: 'Ben' }] }],
  });
  const shown = await get(id);
  expect(shown).toMatchObject({ recipients: 3, pending: 0, counts: { accepted: 3, failed: 0, erased: 0 } });
  const page = (await call('GET', `/${id}/recipients?state=accepted&limit=2`)).body;
  const next = (await call('GET', `/${id}/recipients?state=accepted&limit=2&cursor=${page.nextCursor}`)).body;
  expect([...page.data, ...next.data].map(({ to, ref }) => [to, ref])).toEqual([
    [asha?.to, 'a'],
    [ben?.to, null],
    ['US.13491208655302741918', null],
  ]);
  expect(codeOf(await add(id, people(1)))).toEqual([409, 'broadcast_started']);
  for (const action of ['start', 'pause', 'resume', 'cancel'])
    expect(codeOf(await verb(id, action))).toEqual([409, 'broadcast_finished']);
  expect(
    await query(stack.database, 'select 1 from workflow_tasks where waba_id = :waba', { waba: stack.wabaId }),
  ).toEqual([]);
});

test('steps of one broadcast that run side by side give each recipient one message', async () => {
  const { started, setPace } = calls();
  await setPace(1_000);
  const everybody = people(60);
  const broadcastId = await started(everybody);
  const ids = { wabaId: stack.wabaId, broadcastId };
  // A worker that was taken for dead goes on beside the one that took over.
  const tools = { ...stack.config, database: stack.database, send: stack.makeSend };
  await Promise.all([1, 2, 3, 4].map(() => stepBroadcast(tools, ids, WHOLE_PASS)));
  await stateIs(broadcastId, 'done');
  expect((await sentTo()).toSorted()).toEqual(everybody.map(({ to }) => to).toSorted());
});

test('what another tenant has is not there', async () => {
  const id = await calls().draft(people(1));
  const foreign = await stack.newTenant();
  const as = { ...stack, ...foreign };
  for (const [method, path, body] of [
    ['GET', `/${id}`, undefined],
    ['GET', `/${id}/recipients`, undefined],
    ['POST', `/${id}/recipients`, { recipients: people(1) }],
    ['POST', `/${id}/start`, undefined],
    ['POST', `/${id}/cancel`, undefined],
  ] as const)
    expect((await askApi(as, `${BROADCASTS}${path}`, { method, body })).status).toBe(404);
  expect((await askApi(as, BROADCASTS, {})).body.data).toEqual([]);
});

test('what is paused waits, what is cancelled is not sent', async () => {
  const { started, verb, get, setPace } = calls();
  await setPace(2);
  await holdBackBroadcasts();
  const id = await started(people(40));
  await eventually('one waits', async () => (await get(id)).counts.queued > 0);
  expect((await verb(id, 'pause')).body).toMatchObject({ state: 'paused', pausedBecause: null });
  const paused = await stack.sendRequests();
  // Whoever waits has looked since: at its turn the pause is there.
  const [waiting] = await queryColumn<string>(
    stack.database,
    `select o.message_id from outbound_messages o where o.waba_id = :waba and o.state = 'queued' order by 1 limit 1`,
    { waba: stack.wabaId },
  );
  const limits = { timeoutMs: 1_000, retryMs: 3_600_000, messagesPerSecond: null };
  expect(await takeSendTurn(stack.database, stack.wabaId, waiting ?? '', limits)).toMatchObject({
    kind: 'wait',
    reason: 'its broadcast, which is paused',
  });
  await query(stack.database, 'delete from send_pacing where phone_number_id = :number', {
    number: stack.number,
  });
  expect((await verb(id, 'resume')).body.state).toBe('running');
  await eventually('it goes on', async () => (await stack.sendRequests()).length > paused.length + 1);
  expect((await verb(id, 'cancel')).body.state).toBe('cancelled');
  await eventually('its workflow has ended', async () => {
    const text = 'select 1 from workflow_tasks where waba_id = :waba';
    return (await query(stack.database, text, { waba: stack.wabaId })).length === 0;
  });
  const { counts } = await get(id);
  expect(counts).toMatchObject({ queued: 0, pending: 0, failed: 0 });
  expect(counts.accepted + counts.cancelled + counts.unknown).toBe(40);
  expect(await sentTo()).toHaveLength(counts.accepted);
});

test.for([[131048], [130497], [132015]])(
  'it pauses itself at the error %i of upstream, with an alert',
  async ([code]) => {
    const { started, get, setPace, verb } = calls();
    await setPace(2);
    await stack.addFault({ match: 'send', kind: 'status', status: 400, code: code ?? 0, times: 1 });
    const id = await started(people(30));
    await stateIs(id, 'paused');
    expect((await get(id)).pausedBecause).toContain(`(${code})`);
    const alerts = await listPausedBroadcasts(stack.database, 10);
    expect(alerts.filter((one) => one.id === id)).toMatchObject([{ wabaId: stack.wabaId, name: 'Sale' }]);
    await setPace(1_000);
    // What failed before does not pause it again.
    expect((await verb(id, 'resume')).body).toMatchObject({ state: 'running', pausedBecause: null });
    await stateIs(id, 'done');
    expect((await get(id)).counts).toMatchObject({
      failed: 1,
      accepted: 29,
      failedByCode: { [code ?? 0]: 1 },
    });
  },
);

test('it pauses itself when the account is restricted', async () => {
  const { started, get, setPace } = calls();
  await setPace(1);
  const id = await started(people(30));
  const report = {
    wabaId: stack.wabaId,
    kind: 'account_restricted',
    subject: 'restriction',
    days: 7,
  } as const;
  await stack.database.transaction((trx) =>
    noteProblems(trx, [{ ...report, reason: 'The account is restricted.', reportedAt: new Date() }]),
  );
  await stateIs(id, 'paused');
  expect((await get(id)).pausedBecause).toBe('The account is restricted.');
});

test('it pauses itself when more than a fifth of the last 200 failed', async () => {
  const { started, get, setPace } = calls();
  await setPace(4);
  await stack.addFault({ match: 'send', kind: 'status', status: 400, code: 131026 });
  const id = await started(people(400));
  await stateIs(id, 'paused');
  const { counts, pausedBecause } = await get(id);
  expect(pausedBecause).toMatch(/of the last \d+ messages failed, most with the error 131026/);
  expect(counts.failed).toBeGreaterThan(40);
  expect(counts.pending).toBeGreaterThan(100);
});

test('a refused access token fails no message: the broadcast waits, and then reaches each once', async () => {
  const { started, get, setPace, verb } = calls();
  await setPace(1_000);
  await stack.addFault({ match: 'send', kind: 'status', status: 401, code: 190 });
  const everybody = people(30);
  const id = await started(everybody);
  await stateIs(id, 'paused');
  expect((await get(id)).pausedBecause).toMatch(/access token/);
  const sending = `select 1 from outbound_messages where waba_id = :wabaId and state = 'sending'`;
  const underWay = async () => (await query(stack.database, sending, { wabaId: stack.wabaId })).length;
  await eventually('none is under way', underWay, { is: 0 });
  await stack.clearUpstream();
  await stack.setAccessToken(null);
  await verb(id, 'resume');
  await stateIs(id, 'paused');
  await stack.setAccessToken('EAAG-test-token');
  expect((await verb(id, 'resume')).status).toBe(200);
  await stateIs(id, 'done');
  await eventually('all are accepted', async () => (await get(id)).counts.accepted, { is: 30 });
  expect((await sentTo()).toSorted()).toEqual(everybody.map(({ to }) => to).toSorted());
});

test('what upstream was asked before a broadcast was resumed does not pause it again', async () => {
  const { started, get, setPace, verb } = calls();
  await setPace(1);
  const id = await started(people(30));
  await stateIs(id, 'running');
  const ids = { wabaId: stack.wabaId, broadcastId: id };
  const { runningSince } = await broadcastOf({ database: stack.database }, stack.wabaId, id);
  expect(await pauseItself(stack.database, ids, 'refused', { runningSince: new Date(0) })).toBe(true);
  expect((await get(id)).state).toBe('running');
  expect(await pauseItself(stack.database, ids, 'refused', { runningSince })).toBe(true);
  expect((await get(id)).state).toBe('paused');
  await verb(id, 'cancel');
});

test('a token that the WABA had before pauses no broadcast that was resumed with another one', async () => {
  const { started, get, setPace, verb } = calls();
  await setPace(1);
  const id = await started(people(30));
  const open = 'select message_id from scheduled_messages where broadcast_id = :id limit 1';
  await eventually('one has a message', async () => (await query(stack.database, open, { id })).length, {
    is: 1,
  });
  const [messageId = ''] = await queryColumn<string>(stack.database, open, { id });
  const tools = { database: stack.database, secretBox: testSecretBox };
  const refused = async (token: string | null, of: { runningSince: Date | null } | null) => {
    expect(await pausedForToken(tools, { wabaId: stack.wabaId, messageId }, { token, of })).toBe(true);
    return (await get(id)).state;
  };
  const { runningSince } = await broadcastOf({ database: stack.database }, stack.wabaId, id);
  expect(await refused(null, null)).toBe('running');
  expect(await refused('EAAG-before', { runningSince })).toBe('running');
  expect(await refused('EAAG-test-token', { runningSince })).toBe('paused');
  await verb(id, 'resume');
  await stack.setAccessToken(null);
  expect(await refused(null, null)).toBe('paused');
  await stack.setAccessToken('EAAG-test-token');
  await verb(id, 'cancel');
});

test('customers who want no marketing are suppressed', async () => {
  const { started, get, call, setPace } = calls();
  await setPace(1_000);
  const report = { name: 'winter_sale', language: 'en_US', status: 'APPROVED', category: 'MARKETING' };
  const nothing = { quality: null, rejectedReason: null, content: null, isChanged: false };
  await noteTemplates(stack.database, [
    { wabaId: stack.wabaId, templateId: '77', at: new Date(), ...report, ...nothing },
  ]);
  const everybody = people(5);
  const phone = everybody[2]?.to ?? '';
  const tools = { database: stack.database, actor: SYSTEM };
  await noteOptOut(tools, stack.wabaId, { phone }, { scope: 'marketing', source: 'api' });
  const id = await started(everybody);
  await stateIs(id, 'done');
  expect((await get(id)).counts).toMatchObject({ suppressed: 1, accepted: 4, failed: 0 });
  const { data } = (await call('GET', `/${id}/recipients?state=suppressed`)).body;
  expect(data).toEqual([
    { to: phone, ref: null, state: 'suppressed', serviceMessageId: null, errorCode: null },
  ]);
  expect(await sentTo()).not.toContain(phone);
});

test('messages of broadcasts leave at 70 % of the pace of their number, by the times that they draw', async () => {
  const { started, setPace, verb } = calls();
  await setPace(10);
  const id = await started(people(30));
  await eventually('all that may be ahead have drawn', async () => {
    const text = 'select 1 from scheduled_messages where broadcast_id = :id and paced_at is not null';
    return (await query(stack.database, text, { id })).length >= 20;
  });
  await verb(id, 'cancel');
  const times = await queryColumn<number>(
    stack.database,
    `select extract(epoch from paced_at)::float8 * 1000 from scheduled_messages
      where broadcast_id = :id and paced_at is not null order by paced_at`,
    { id },
  );
  // One in 142.9 ms, where the number takes one in 100; the times are kept in whole milliseconds.
  const gaps = times.slice(1).map((time, n) => time - (times[n] ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(142);
  expect(((times.at(-1) ?? 0) - (times[0] ?? 0)) / gaps.length).toBeGreaterThanOrEqual(142.8);
  // Others draw from the rest of the number: their row is apart.
  const [own] = await query<{ n: number }>(
    stack.database,
    `select count(*)::int as n from send_pacing where phone_number_id = :number and recipient = '*'`,
    { number: stack.number },
  );
  expect(own?.n).toBe(1);
});

test('what is sent beside a broadcast waits for no lock of it, and its turns are drawn apart', async () => {
  const { started, setPace, verb } = calls();
  const { database, wabaId, number, secondNumber } = stack;
  await setPace(1);
  const customer = { to: '+12025550143', type: 'text', text: { body: 'code 1' } };
  expect((await stack.sendToEnd(customer)).body.state).toBe('accepted');
  expect((await stack.sendToEnd({ ...customer, phoneNumberId: secondNumber })).body.state).toBe('accepted');
  await holdBackBroadcasts();
  const id = await started(people(60));
  const open = 'select message_id from scheduled_messages where broadcast_id = :id and is_open order by 1';
  await eventually('some have messages', async () => (await query(database, open, { id })).length >= 5);
  for (const messageId of await queryColumn<string>(database, open, { id })) {
    // Their turns are far apart, so that they wait.
    const pace = { retryMs: 3_600_000, messagesPerSecond: 0.01 };
    await database.transaction((trx) => heldBySchedule(trx, { messageId, phoneNumberId: number }, pace));
  }
  await database.transaction(async (trx) => {
    await trx.raw('set local idle_in_transaction_session_timeout = 0');
    // All that a step of it, a pause of it and the draws of its messages ever lock, held for longer than they do.
    await lockBroadcastsOf(trx, wabaId);
    await lockBroadcast(trx, { wabaId, broadcastId: id });
    for (const locked of [
      'select 1 from broadcast_recipients where broadcast_id = :id for update',
      'select 1 from scheduled_messages where broadcast_id = :id for update',
      `select 1 from send_pacing where phone_number_id = :number and recipient = '*' for update`,
    ])
      await query(trx, locked, { id, number });
    for (const phoneNumberId of [number, secondNumber])
      expect((await stack.sendToEnd({ ...customer, phoneNumberId })).body.state).toBe('accepted');
  });
  // The number's own row is that of the singles alone: nothing of the broadcast was drawn from it.
  const [ahead] = await queryColumn<number>(
    database,
    `select extract(epoch from free_at - clock_timestamp())::float8 from send_pacing where phone_number_id = :number and recipient = ''`,
    { number },
  );
  expect(ahead).toBeLessThan(10);
  // What a caller waits for overtakes them in Temporal too.
  const messageId = (await queryColumn<string>(database, open, { id }))[0];
  const { raw } = await stack.client.workflow.getHandle(`send/${messageId}`).describe();
  expect(raw.workflowExecutionInfo?.priority?.priorityKey).toBe(4);
  await verb(id, 'cancel');
});

test('five run or are paused; a scheduled one begins at its time', async () => {
  const { started, draft, verb, get, setPace } = calls();
  await setPace(1);
  const ids = [];
  for (let n = 0; n < 5; n += 1) ids.push(await started(people(20)));
  await verb(ids[0] ?? '', 'pause');
  const sixth = await draft(people(1));
  expect(codeOf(await verb(sixth, 'start'))).toEqual([409, 'too_many_broadcasts']);
  const later = await started(people(1), { sendAt: new Date(Date.now() + 31_000).toISOString() });
  expect((await get(later)).state).toBe('scheduled');
  for (const id of ids) await verb(id, 'cancel');
  await setPace(1_000);
  await stateIs(later, 'done');
  expect(Date.parse((await get(later)).finishedAt)).toBeGreaterThan(Date.parse((await get(later)).sendAt));
});

test('a key with limits starts none, and an empty one does not start', async () => {
  const { create, verb } = calls();
  expect(codeOf(await verb(await create(), 'start'))).toEqual([422, 'broadcast_empty']);
  const limited = { name: 'x', expiresAt: null, scopes: ['send'], maxMessagesPerDay: 5 };
  const tools = { database: stack.database, actor: SYSTEM };
  const { apiKey } = await createKey(tools, stack.wabaId, limited);
  const as = { ...stack, authorization: `Bearer ${apiKey}` };
  expect(codeOf(await broadcastCalls(as).verb(await calls().draft(people(1)), 'start'))).toEqual([
    403,
    'insufficient_scope',
  ]);
  const wrong = await calls().call('POST', '', {
    name: 'x',
    phoneNumberId: stack.number,
    template: { name: 'a' },
  });
  expect(wrong.status).toBe(400);
});
