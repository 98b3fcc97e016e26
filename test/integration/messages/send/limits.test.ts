import { describe, expect, test } from 'vitest';
import { forgetSpentPacing } from '../../../../src/features/messages/send/send-pacing.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { runAdmin } from '../../../support/admin-cli.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { sendingStackOfFile, textTo } from './sending-stack.ts';

const stack = sendingStackOfFile({ HELIOGRAPH_SEND_MESSAGES_PER_SECOND: '10' });

/** The times at which messages were let go, in ms since 1970. */
async function drawnTimes(): Promise<number[]> {
  const rows = await query<{ at: Date }>(
    stack.database,
    'select number_at as at from outbound_messages where waba_id = :wabaId order by number_at',
    { wabaId: stack.wabaId },
  );
  return rows.map(({ at }) => at.getTime());
}

describe('the limit of a number', () => {
  test('makes messages wait, and none fails', async () => {
    const replies = await Promise.all(Array.from({ length: 40 }, () => stack.send(textTo())));
    expect(replies.filter(({ status }) => status !== 200 && status !== 202)).toEqual([]);
    await eventually('all are sent', async () => (await stack.sent()).length, { is: 40 });
    const times = (await stack.sendRequests()).map(({ at }) => Date.parse(at));
    expect(times).toHaveLength(40);
    const drawn = await drawnTimes();
    const gaps = drawn.slice(1).map((at, index) => at - (drawn[index] ?? 0));
    // 10 a second; times are kept to the millisecond.
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(98);
    expect(times.toSorted().every((at, index) => at >= (drawn[index] ?? 0) - 5)).toBe(true);
    expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(3_500);
  });

  test('that upstream reports holds back the number’s other messages too', async () => {
    await stack.addFault({ match: 'send', kind: 'status', status: 429, code: 130429, times: 1 });
    const first = stack.send(textTo());
    await eventually('the limit was met', async () => (await stack.sendRequests()).length, { is: 1 });
    const at = performance.now();
    const second = stack.send(textTo());
    await Promise.all([first, second]);
    expect(performance.now() - at).toBeGreaterThan(600);
    expect(await stack.sent()).toHaveLength(2);
  });
});

describe('the pace of one number', () => {
  /** How long the last message keeps its number for itself, to 10 ms: a cause, which a busy machine does not change. */
  const intervalOf = async (phoneNumberId: string) => {
    const [row] = await query<{ intervalMs: number }>(
      stack.database,
      `select cast(10 * round(100 * extract(epoch from free_at - (
                select max(number_at) from outbound_messages where phone_number_id = p.phone_number_id))) as integer
              ) as "intervalMs"
         from send_pacing p where phone_number_id = :phoneNumberId and recipient = ''`,
      { phoneNumberId },
    );
    return row?.intervalMs;
  };
  const gapsOf = async (phoneNumberId: string) => {
    const rows = await query<{ at: Date }>(
      stack.database,
      'select number_at as at from outbound_messages where phone_number_id = :phoneNumberId order by message_id desc limit 5',
      { phoneNumberId },
    );
    const times = rows.map(({ at }) => at.getTime()).toSorted((a, b) => a - b);
    return times.slice(1).map((at, index) => at - (times[index] ?? 0));
  };

  test('is its own where it has one, also beside a faster one, and the setting’s again by "default"', async () => {
    const { number, secondNumber } = stack;
    const pace = async (perSecond: string) =>
      await runAdmin(stack.settings, ['waba', 'set-pace', number, '--per-second', perSecond, '--json']);
    expect(JSON.parse((await pace('2')).stdout)).toMatchObject({ messagesPerSecond: 2 });
    const sends = [number, secondNumber].flatMap((from) =>
      Array.from({ length: 5 }, () => stack.send({ ...textTo(), phoneNumberId: from })),
    );
    await Promise.all(sends);
    await eventually('all are sent', async () => (await stack.sent()).length, { is: 10 });
    expect(Math.min(...(await gapsOf(number)))).toBeGreaterThanOrEqual(498);
    expect(await intervalOf(number)).toBe(500);
    expect(await intervalOf(secondNumber)).toBe(100);
    expect((await pace('0')).exitCode).toBe(2);
    expect(JSON.parse((await pace('default')).stdout)).toMatchObject({ messagesPerSecond: null });
    await stack.send(textTo());
    expect(await intervalOf(number)).toBe(100);
  });
});

describe('the limit of a recipient', () => {
  test('lets 45 go at once and then one in six seconds', async () => {
    const to = '+12025557777';
    const debt = `insert into send_pacing (phone_number_id, recipient, free_at)
                  values (:number, '12025557777', now() + interval '263 seconds')`;
    await query(stack.database, debt, { number: stack.number });
    expect((await stack.send(textTo(to))).status).toBe(200);
    const startedAt = performance.now();
    const next = stack
      .send(textTo(to))
      .then(({ status }) => ({ status, waitedMs: performance.now() - startedAt }));
    // Others are not held back by it.
    expect((await stack.send(textTo())).status).toBe(200);
    expect(await Promise.race([next, 'waiting'])).toBe('waiting');
    const { status, waitedMs } = await next;
    expect(status).toBe(200);
    expect(waitedMs).toBeGreaterThan(2_500);
  });

  test('that upstream reports is waited for, and the message goes out', async () => {
    await stack.addFault({ match: 'send', kind: 'status', status: 400, code: 131056, times: 1 });
    const { status } = await stack.send(textTo('+12025557778'));
    expect(status).toBe(200);
    expect(await stack.sendRequests()).toHaveLength(2);
  });

  test('is forgotten when it limits nothing any more', async () => {
    const { database, number } = stack;
    await query(
      database,
      `insert into send_pacing (phone_number_id, recipient, free_at)
       values (:number, 'spent', now() - interval '1 hour'), (:number, 'busy', now() + interval '1 hour')`,
      { number },
    );
    await forgetSpentPacing(database, 1_000);
    const left = await query(database, 'select recipient from send_pacing where phone_number_id = :number', {
      number,
    });
    expect(left).toEqual([{ recipient: 'busy' }]);
  });
});
