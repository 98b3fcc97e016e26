import { expect, test } from 'vitest';
import { takeSendTurn } from '../../../../src/features/messages/send/outbound-messages.ts';
import {
  cancelScheduled,
  insertSchedule,
} from '../../../../src/features/messages/send/scheduled-messages.ts';
import { heldBySchedule } from '../../../../src/features/messages/send/scheduled-turn.ts';
import { drawSendTime, numberPace } from '../../../../src/features/messages/send/send-pacing.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute, query, queryColumn, queryValue } from '../../../../src/platform/postgres/sql.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { sendingStackOfFile, textTo } from './sending-stack.ts';

const stack = sendingStackOfFile();

const mine = () => ({ wabaId: stack.wabaId, number: stack.number });
const HOUR_MS = 3_600_000;

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
  const sendAt = new Date(Date.now() + HOUR_MS).toISOString();
  // Direct Send needs no open window.
  const { status, body } = await stack.send({ ...textTo(), category: 'utility', sendAt });
  expect([status, body.state, body.sendAt]).toEqual([202, 'scheduled', sendAt]);
  const first = String(body.serviceMessageId);
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

test('a single message does not wait for the scheduled one that left before it', async () => {
  const { database, number } = stack;
  const paced = { phoneNumberId: number, recipient: null };
  const draw = () => database.transaction((trx) => drawSendTime(trx, paced, numberPace(PACE)));
  // That far ahead no clock counts: what the scheduled one keeps is one interval.
  const left = new Date('2100-01-01T00:00:00Z').getTime();
  const row = `insert into send_pacing as p (phone_number_id, recipient, free_at) values (:number, '', :freeAt)
    on conflict (phone_number_id, recipient) do update set free_at = excluded.free_at`;
  const freeAt = new Date(left + numberPace(PACE).intervalMs);
  await execute(database, row, { number, freeAt });
  expect((await draw()).at.getTime()).toBeLessThanOrEqual(left);
  await execute(database, 'delete from send_pacing where phone_number_id = :number', { number });
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
