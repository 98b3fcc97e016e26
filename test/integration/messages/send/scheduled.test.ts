import { expect, test } from 'vitest';
import { noteOptOut } from '../../../../src/features/customers/tenant-opt-outs.ts';
import { previewConversations } from '../../../../src/features/messages/conversations/conversation-previews.ts';
import { moveScheduled } from '../../../../src/features/messages/send/scheduled-messages.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { execute, query, queryColumn } from '../../../../src/platform/postgres/sql.ts';
import { ifOpen } from '../../../../src/platform/temporal/workflow-states.ts';
import { wakeTask } from '../../../../src/platform/temporal/workflow-tasks.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { askApi } from './ask-api.ts';
import { sendingStackOfFile, textTo } from './sending-stack.ts';

const stack = sendingStackOfFile();

const mine = () => ({ wabaId: stack.wabaId, number: stack.number });
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const HOUR_MS = 3_600_000;

const schedule = async (sendAt = inMs(HOUR_MS), more: object = {}) => {
  const { status, body } = await stack.send({ ...textTo(), ...CONSENTED, ...more, sendAt });
  expect([status, body.state, body.sendAt]).toEqual([202, 'scheduled', new Date(sendAt).toISOString()]);
  return String(body.serviceMessageId);
};
/** Direct Send needs no open window. */
const CONSENTED = { category: 'utility' };

/** As a move to a time that a request may not give. */
const moveTo = (id: string, sendAt: string) =>
  moveScheduled(
    { database: stack.database, actor: SYSTEM },
    stack.wabaId,
    id,
    { sendAt },
    Date.parse(sendAt) - 60_000,
  );

const stateOf = async (id: string) => (await stack.get(id)).body.state;
const list = async (more = '') =>
  (await askApi(stack, `/api/external/messages?state=scheduled${more}`, {})).body;
const cancel = (id: string) => askApi(stack, `/api/external/messages/${id}/cancel`, { method: 'POST' });
/** The run that Temporal has; null: none. */
const runOf = (id: string) => ifOpen(stack.client.workflow.getHandle(`send/${id}`).describe());
const hasRun = async (id: string) => (await runOf(id))?.status.name === 'RUNNING';

test('a message leaves at its time and not before, by a workflow that Temporal starts then', async () => {
  const sendAt = inMs(HOUR_MS);
  const id = await schedule(sendAt);
  await eventually('Temporal has its run', () => hasRun(id));
  const run = await runOf(id);
  expect(run?.memo).toEqual({ startsAt: new Date(sendAt).toISOString() });
  // Temporal begins it no earlier: it has no workflow task before.
  expect(run?.executionTime?.getTime()).toBeGreaterThan((run?.startTime.getTime() ?? 0) + HOUR_MS / 2);
  expect([run?.historyLength, await stateOf(id), await stack.sent()]).toEqual([1, 'scheduled', []]);
  const soon = inMs(4_000);
  await moveTo(id, soon);
  await eventually('it is sent', async () => (await stateOf(id)) === 'accepted');
  expect(await stack.sent()).toHaveLength(1);
  const { body } = await stack.get(id);
  expect([body.state, body.sendAt, body.message.sendAt]).toEqual(['accepted', soon, undefined]);
  expect(Date.parse(body.timestamp)).toBeGreaterThanOrEqual(Date.parse(soon));
  expect((await list()).data).toEqual([]);
});

test('nothing stands between its time and its sending: Temporal begins its run then, and the first look at it sends it', async () => {
  const sendAt = inMs(HOUR_MS);
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1) ids.push(await schedule(sendAt));
  const begins = async (id: string) => {
    await eventually('Temporal has its run', () => hasRun(id));
    return ((await runOf(id))?.executionTime?.getTime() ?? 0) - Date.parse(sendAt);
  };
  // A slow machine may give single ones to Temporal late; none may begin before its time.
  const lateMs = await Promise.all(ids.map(begins));
  expect(Math.min(...lateMs)).toBeGreaterThanOrEqual(0);
  expect(Math.min(...lateMs)).toBeLessThan(1_000);
  const soon = Date.now() + 3_000;
  await Promise.all(ids.map((id, n) => moveTo(id, new Date(soon + n * 400).toISOString())));
  for (const id of ids) await eventually('it is sent', async () => (await stateOf(id)) === 'accepted');
  for (const id of ids) {
    const history = await stack.client.workflow.getHandle(`send/${id}`).fetchHistory();
    const events = history.events ?? [];
    const begun = events.flatMap(({ activityTaskStartedEventAttributes: one }) => one?.attempt ?? []);
    expect([events.filter(({ timerStartedEventAttributes: timer }) => timer != null), begun]).toEqual([
      [],
      [1],
    ]);
  }
  const tookMs = await queryColumn<number>(
    stack.database,
    `select (extract(epoch from o.finished_at - s.send_at) * 1000)::float8
       from scheduled_messages s join outbound_messages o on o.message_id = s.message_id where s.waba_id = :wabaId`,
    mine(),
  );
  expect(Math.min(...tookMs)).toBeGreaterThanOrEqual(0);
  expect(Math.min(...tookMs)).toBeLessThan(10_000);
});

test('the list has those that were not sent, by their time, in pages that miss none', async () => {
  const late = await schedule(inMs(3 * HOUR_MS));
  const soon = await schedule(inMs(HOUR_MS));
  const other = await schedule(inMs(2 * HOUR_MS), { phoneNumberId: stack.secondNumber });
  const ids = ({ data }: { data: { serviceMessageId: string }[] }) =>
    data.map(({ serviceMessageId }) => serviceMessageId);
  expect(ids(await list())).toEqual([soon, other, late]);
  expect(ids(await list(`&phoneNumberId=${stack.number}`))).toEqual([soon, late]);
  const first = await list('&limit=1');
  expect(first.data[0]).toMatchObject({ state: 'scheduled', notAfter: null, message: { type: 'text' } });
  expect(ids(await list(`&limit=2&cursor=${first.nextCursor}`))).toEqual([other, late]);
  const foreign = await stack.newTenant();
  expect(
    (await askApi({ ...stack, ...foreign }, '/api/external/messages?state=scheduled', {})).body.data,
  ).toEqual([]);
  for (const change of [`/${soon}/cancel`, `/${late}/cancel`])
    expect(
      (await askApi({ ...stack, ...foreign }, `/api/external/messages${change}`, { method: 'POST' })).status,
    ).toBe(404);
});

test('a cancelled message is not sent, and its run ends', async () => {
  const id = await schedule();
  await eventually('Temporal has its run', () => hasRun(id));
  const { status, body } = await cancel(id);
  expect([status, body.state]).toEqual([200, 'cancelled']);
  expect((await stack.get(id)).body).toMatchObject({ state: 'cancelled', error: { code: 'cancelled' } });
  expect((await cancel(id)).body.error.code).toBe('message_not_scheduled');
  await eventually('its run has ended', async () => !(await hasRun(id)));
  expect(await query(stack.database, 'select 1 from workflow_tasks where waba_id = :wabaId', mine())).toEqual(
    [],
  );
  const events = await query(stack.database, 'select 1 from events where waba_id = :wabaId', mine());
  expect([events, await stack.sendRequests()]).toEqual([[], []]);
});

test('what is scheduled is the last of its conversation, and moves that in the list, once it is sent', async () => {
  const [asha, ben, cara] = ['+12025550143', '+12025550144', '+12025550145'];
  const now = async (to: string | undefined) => {
    const { body } = await stack.send({ ...textTo(), ...CONSENTED, to });
    expect(body.state).toBe('accepted');
    return [to, String(body.serviceMessageId)];
  };
  type Shown = { customer: { waId: string }; lastMessage: { serviceMessageId: string } | null };
  const lastOf = ({ customer, lastMessage }: Shown) => [
    `+${customer.waId}`,
    lastMessage?.serviceMessageId ?? null,
  ];
  /** The conversations in the order of the list, each with its last message, which its own page agrees with. */
  const shown = async () => {
    const { data } = (await askApi(stack, '/api/external/conversations', {})).body;
    for (const { id, lastMessage } of data) {
      const own = await askApi(stack, `/api/external/conversations/${id}`, {});
      expect(own.body.lastMessage).toEqual(lastMessage);
      const preview = (await previewConversations(stack.database, stack.wabaId, [id])).get(id);
      expect(preview?.content ?? null).toEqual(lastMessage === null ? null : expect.any(String));
    }
    return data.map(lastOf);
  };
  const toAsha = await now(asha);
  const later = await schedule(inMs(HOUR_MS), { to: asha });
  const toBen = await now(ben);
  const dropped = await schedule(inMs(HOUR_MS), { to: asha });
  const toCara = await schedule(inMs(HOUR_MS), { to: cara });
  expect(await shown()).toEqual([[cara, null], toBen, toAsha]);
  await cancel(dropped);
  const again = await now(asha);
  expect(await shown()).toEqual([again, [cara, null], toBen]);
  await now(ben);
  await moveTo(later, inMs(100));
  await eventually('it is sent', async () => (await stateOf(later)) === 'accepted');
  expect((await shown())[0]).toEqual([asha, later]);
  const newest = await now(asha);
  expect((await shown())[0]).toEqual(newest);
  await cancel(toCara);
  expect((await shown()).at(-1)).toEqual([cara, null]);
});

test('a move replaces the run that waits: earlier, it leaves at its new time', async () => {
  const id = await schedule();
  await eventually('Temporal has its run', () => hasRun(id));
  const later = inMs(2 * HOUR_MS);
  const moved = await askApi(stack, `/api/external/messages/${id}`, {
    method: 'PATCH',
    body: { sendAt: later, notAfter: inMs(3 * HOUR_MS) },
  });
  expect([moved.status, moved.body.sendAt]).toEqual([200, new Date(later).toISOString()]);
  await eventually('the run waits for the new time', async () => {
    return (await runOf(id))?.memo?.startsAt === new Date(later).toISOString();
  });
  await moveTo(id, inMs(500));
  await eventually('it is sent', async () => (await stateOf(id)) === 'accepted');
  expect(await stack.sent()).toHaveLength(1);
  const late = await askApi(stack, `/api/external/messages/${id}`, {
    method: 'PATCH',
    body: { sendAt: later },
  });
  expect([late.status, late.body.error.code]).toEqual([409, 'message_not_scheduled']);
});

test('a process of the release before, which would start it at once, does not see it before its time', async () => {
  const id = await schedule();
  const seen = () =>
    query(
      stack.database,
      `select 1 from workflow_tasks where workflow_id = 'send/' || :id and next_start_at < now() + interval '30 minutes'`,
      { id },
    );
  expect(await seen()).toEqual([]);
  await eventually('Temporal has its run', () => hasRun(id));
  expect(await seen()).toEqual([]);
  await stack.database.transaction((trx) => wakeTask(trx, `send/${id}`));
  expect(await seen()).toEqual([]);
});

test('a run that Temporal lost is started again for its time', async () => {
  const id = await schedule();
  await eventually('Temporal has its run', () => hasRun(id));
  await stack.client.workflow.getHandle(`send/${id}`).terminate();
  // As reconcile does when it misses the run.
  await stack.database.transaction((trx) => wakeTask(trx, `send/${id}`));
  await eventually('Temporal has its run', () => hasRun(id));
  expect([await stateOf(id), await stack.sent()]).toEqual(['scheduled', []]);
});

const failureOf = async (id: string) => {
  await moveTo(id, inMs(500));
  await eventually('it has failed', async () => (await stateOf(id)) === 'failed');
  const { body } = await stack.get(id);
  const events = await query<{ eventId: string }>(
    stack.database,
    `select event_id as "eventId" from events where waba_id = :wabaId and event_type = 'status'`,
    mine(),
  );
  expect([events, await stack.sendRequests()]).toEqual([[{ eventId: `local:${id}` }], []]);
  return body.error.code;
};

test('a window that has closed by then fails it before it is sent', async () => {
  const id = await schedule(inMs(HOUR_MS), { category: undefined });
  expect(await failureOf(id)).toBe('window_closed');
});

test('a removed number fails it', async () => {
  const id = await schedule();
  await execute(
    stack.database,
    'update phone_numbers set removed_at = now() where phone_number_id = :number',
    mine(),
  );
  expect(await failureOf(id)).toBe('phone_number_removed');
});

test('a suspension holds it until notAfter', async () => {
  const id = await schedule(inMs(HOUR_MS), { notAfter: inMs(HOUR_MS + 3_000) });
  await execute(
    stack.database,
    'update tenants set suspended_at = now() where id = (select tenant_id from wabas where waba_id = :wabaId)',
    mine(),
  );
  expect(await failureOf(id)).toBe('too_late');
});

test('a customer who opts out meanwhile gets nothing', async () => {
  const to = '+12025550199';
  const id = await schedule(inMs(HOUR_MS), { to });
  const tools = { database: stack.database, actor: SYSTEM };
  await noteOptOut(tools, stack.wabaId, { phone: '12025550199' }, { scope: 'all', source: 'api' });
  expect(await failureOf(id)).toBe('recipient_opted_out');
});

test('a template that upstream paused meanwhile fails it', async () => {
  await execute(
    stack.database,
    `insert into message_templates (waba_id, template_id, name, language, status, category)
     values (:wabaId, '77', 'order_ready', 'en_US', 'APPROVED', 'UTILITY')`,
    mine(),
  );
  const template = { name: 'order_ready', language: { code: 'en_US' } };
  const id = await schedule(inMs(HOUR_MS), {
    ...{ type: 'template', template, text: undefined },
    category: undefined,
  });
  await execute(
    stack.database,
    `update message_templates set status = 'PAUSED' where waba_id = :wabaId`,
    mine(),
  );
  expect(await failureOf(id)).toBe('template_paused');
});

test('a time that cannot be is refused, and a repeated request gives the first answer', async () => {
  const wrong = await stack.send({ ...textTo(), sendAt: inMs(-1_000) });
  expect([wrong.status, wrong.body.error.param]).toEqual([400, 'sendAt']);
  const body = { ...textTo(), sendAt: inMs(HOUR_MS) };
  const key = { 'idempotency-key': 'later-1' };
  const first = await stack.send(body, key);
  const second = await stack.send(body, key);
  expect([first.status, second.text, second.headers['idempotent-replayed']]).toEqual([
    202,
    first.text,
    'true',
  ]);
  expect((await list()).data).toHaveLength(1);
});
