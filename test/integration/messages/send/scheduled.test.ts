import { expect, test } from 'vitest';
import { noteOptOut } from '../../../../src/features/customers/tenant-opt-outs.ts';
import { previewConversations } from '../../../../src/features/messages/conversations/conversation-previews.ts';
import { takeSendTurn } from '../../../../src/features/messages/send/outbound-messages.ts';
import {
  cancelScheduled,
  insertSchedule,
  moveScheduled,
} from '../../../../src/features/messages/send/scheduled-messages.ts';
import { heldBySchedule } from '../../../../src/features/messages/send/scheduled-turn.ts';
import { drawSendTime, numberPace } from '../../../../src/features/messages/send/send-pacing.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute, query, queryColumn, queryValue } from '../../../../src/platform/postgres/sql.ts';
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

test('a turn that waited for a move goes by the new time', async () => {
  const [id = ''] = await manyDue(1);
  const limits = { timeoutMs: 60_000, retryMs: HOUR_MS, messagesPerSecond: 1_000 };
  let turn: ReturnType<typeof takeSendTurn> | undefined;
  await stack.database.transaction(async (trx) => {
    await query(trx, 'select 1 from outbound_messages where message_id = :id for update', { id });
    turn = takeSendTurn(stack.database, stack.wabaId, id, limits);
    const waits = `select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like 'select o.state%' and datname = current_database())`;
    await eventually(
      'the turn waits for the lock',
      async () => await queryValue<boolean>(stack.database, waits),
    );
    await execute(
      trx,
      `update scheduled_messages set send_at = now() + interval '1 hour' where message_id = :id`,
      { id },
    );
  });
  expect(await turn).toMatchObject({ kind: 'wait', reason: 'its time' });
});

test('start and cancel raced 1,000 times: one of them wins', async () => {
  const tools = { database: stack.database, actor: SYSTEM };
  const limits = { timeoutMs: 60_000, retryMs: HOUR_MS, messagesPerSecond: 1_000_000 };
  const ids = await manyDue(1_000);
  const outcomes = { sent: 0, cancelled: 0 };
  for (let n = 0; n < ids.length; n += 20) {
    await Promise.all(
      ids.slice(n, n + 20).map(async (id, k) => {
        const start = () => takeSendTurn(stack.database, stack.wabaId, id, limits);
        const end = () =>
          cancelScheduled(tools, stack.wabaId, id).then(
            () => true,
            ({ code }: { code: string }) =>
              code === 'message_not_scheduled' ? false : Promise.reject(new Error(code)),
          );
        const [turn, isCancelled] = await (k % 2 === 0
          ? Promise.all([start(), end()])
          : Promise.all([end(), start()]).then(([ended, turn]) => [turn, ended] as const));
        expect([turn.kind, isCancelled]).toEqual(isCancelled ? ['over', true] : ['send', false]);
        outcomes[isCancelled ? 'cancelled' : 'sent'] += 1;
      }),
    );
  }
  expect(outcomes.sent + outcomes.cancelled).toBe(1_000);
  expect(Math.min(outcomes.sent, outcomes.cancelled)).toBeGreaterThan(0);
});

/** Scheduled messages whose time has come, each to its own customer. */
async function manyDue(count: number): Promise<string[]> {
  const { wabaId, number } = stack;
  const first = await schedule();
  const ids: string[] = [];
  // No statement outlasts its limit on a slow machine.
  for (let left = count; left > 0; left -= MADE_AT_ONCE)
    ids.push(...(await makeDue({ count: Math.min(left, MADE_AT_ONCE), first, wabaId, number })));
  return ids;
}

const MADE_AT_ONCE = 5_000;

async function makeDue(made: { count: number; first: string; wabaId: string; number: string }) {
  return await queryColumn<string>(
    stack.database,
    `with made as (
       insert into messages (waba_id, phone_number_id, conversation_id, direction, type, content)
       select waba_id, phone_number_id, conversation_id, direction, type, content
         from messages cross join generate_series(1, :count) where id = :first returning id
     ), sends as (
       insert into outbound_messages (message_id, waba_id, phone_number_id, recipient, pair_at, number_at)
       select id, :wabaId, :number, '1202555' || id, now(), now() from made returning message_id
     )
     insert into scheduled_messages (message_id, waba_id, phone_number_id, send_at, paced_at)
     select id, :wabaId, :number, now(), now() from made returning message_id as id`,
    made,
  );
}

test('scheduled messages of a number leave others their part of its pace', async () => {
  const ids = await manyDue(20);
  await execute(
    stack.database,
    'update scheduled_messages set paced_at = null where waba_id = :wabaId',
    mine(),
  );
  const waits: number[] = [];
  for (const messageId of ids) {
    const of = { messageId, phoneNumberId: stack.number };
    const pace = { retryMs: HOUR_MS, messagesPerSecond: 0.1 };
    const held = await stack.database.transaction((trx) => heldBySchedule(trx, of, pace));
    waits.push(held.kind === 'wait' ? Math.round(held.waitMs / 1_000) : 0);
  }
  // One in 10 s at the pace of the number: one in 14.3 s of the scheduled ones.
  expect(waits.at(-1)).toBeGreaterThan(19 * 14 - 30);
  const own = await queryValue<number>(
    stack.database,
    `select count(*)::int from send_pacing where phone_number_id = :number and recipient = ''`,
    mine(),
  );
  expect(own).toBe(0);
});

const PACE = 80;

test('10,000 messages for one moment leave at their part of the pace of the number, and what is sent beside them does not wait', async () => {
  const { database, number, secondNumber } = stack;
  const ids = await manyDue(10_000);
  await execute(database, 'update scheduled_messages set paced_at = null where waba_id = :wabaId', mine());
  const pace = { retryMs: HOUR_MS, messagesPerSecond: PACE };
  const draw = (messageId: string) =>
    database.transaction((trx) => heldBySchedule(trx, { messageId, phoneNumberId: number }, pace));
  const waitOf = async (phoneNumberId: string) =>
    await database.transaction(async (trx) => {
      const { waitMs } = await drawSendTime(trx, { phoneNumberId, recipient: null }, numberPace(PACE));
      return waitMs;
    });
  for (let n = 0; n < ids.length; n += 50) {
    await Promise.all(ids.slice(n, n + 50).map(draw));
    // Singles of the number and of others, in the middle of it.
    if (n % 1_000 === 0) expect([await waitOf(number), await waitOf(secondNumber)]).toEqual([0, 0]);
  }
  const spaced = await query<{ apartMs: number; n: number }>(
    database,
    `select round(extract(epoch from paced_at - lag(paced_at) over (order by paced_at)) * 1000)::float8 as "apartMs", count(*)::int as n
       from scheduled_messages where waba_id = :wabaId and paced_at is not null group by paced_at`,
    mine(),
  );
  expect(spaced).toHaveLength(10_000);
  const least = Math.floor(1_000 / (PACE * 0.7));
  expect(Math.min(...spaced.slice(1).map(({ apartMs }) => apartMs))).toBeGreaterThanOrEqual(least);
  // Another draw gives a message the turn that it has.
  const [first = ''] = ids;
  const turn = 'select paced_at from scheduled_messages where message_id = :first';
  const before = await queryValue(database, turn, { first });
  await draw(first);
  expect(await queryValue(database, turn, { first })).toEqual(before);
});

test('a WABA has 100,000 scheduled messages at most', async () => {
  const { database, wabaId, number } = stack;
  const [id = ''] = await manyDue(100_000);
  const times = { sendAt: new Date(), notAfter: null };
  /** As a process that has counted nothing yet, for a message that is not scheduled: of so many that are. */
  const insertBeside = (open: number) =>
    database.transaction(async (trx) => {
      await execute(
        trx,
        `delete from scheduled_messages where message_id = :id or message_id in (
           select message_id from scheduled_messages where waba_id = :wabaId and message_id <> :id offset :open)`,
        { id, wabaId, open },
      );
      await insertSchedule(trx, {} as Database, { id, wabaId, phoneNumberId: number, ...times });
    });
  await expect(insertBeside(100_000)).rejects.toMatchObject({ code: 'too_many_scheduled' });
  await insertBeside(99_999);
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
