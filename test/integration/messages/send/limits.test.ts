import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { forgetSpentPacing } from '../../../../src/messages/send/send-pacing.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { runAdmin } from '../../../support/admin-cli.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { NUMBER, type SendingStack, startSendingStack, textTo } from './sending-stack.ts';

let stack: SendingStack;

beforeAll(async () => {
  stack = await startSendingStack({ HELIOGRAPH_SEND_MESSAGES_PER_SECOND: '10' });
});
afterAll(() => stack.stop());
beforeEach(() => stack.clearUpstream());

/** The times at which messages were let go, in ms since 1970. */
async function drawnTimes(): Promise<number[]> {
  const rows = await query<{ at: Date }>(
    stack.database,
    'select number_at as at from outbound_messages order by number_at',
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
  const OTHER = '800000000000112';
  /** How long the last message keeps its number for itself, to 10 ms: a cause, which a busy machine does not change. */
  const intervalOf = async (phoneNumberId: string) => {
    const [row] = await query<{ intervalMs: number }>(
      stack.database,
      `select cast(10 * round(100 * extract(epoch from free_at - (
                select max(number_at) from outbound_messages where phone_number_id = p.phone_number_id))) as integer
              ) as "intervalMs"
         from send_pacing p where phone_number_id = ? and recipient = ''`,
      [phoneNumberId],
    );
    return row?.intervalMs;
  };
  const gapsOf = async (phoneNumberId: string) => {
    const rows = await query<{ at: Date }>(
      stack.database,
      'select number_at as at from outbound_messages where phone_number_id = ? order by message_id desc limit 5',
      [phoneNumberId],
    );
    const times = rows.map(({ at }) => at.getTime()).toSorted((a, b) => a - b);
    return times.slice(1).map((at, index) => at - (times[index] ?? 0));
  };

  test('is its own where it has one, also beside a faster one, and the setting’s again by "default"', async () => {
    const pace = async (perSecond: string) =>
      await runAdmin(stack.settings, ['waba', 'set-pace', NUMBER, '--per-second', perSecond, '--json']);
    expect(JSON.parse((await pace('2')).stdout)).toMatchObject({ messagesPerSecond: 2 });
    const sends = [NUMBER, OTHER].flatMap((from) =>
      Array.from({ length: 5 }, () => stack.send({ ...textTo(), phoneNumberId: from })),
    );
    await Promise.all(sends);
    await eventually('all are sent', async () => (await stack.sent()).length, { is: 10 });
    expect(Math.min(...(await gapsOf(NUMBER)))).toBeGreaterThanOrEqual(498);
    expect(await intervalOf(NUMBER)).toBe(500);
    expect(await intervalOf(OTHER)).toBe(100);
    expect((await pace('0')).exitCode).toBe(2);
    expect(JSON.parse((await pace('default')).stdout)).toMatchObject({ messagesPerSecond: null });
    await stack.send(textTo());
    expect(await intervalOf(NUMBER)).toBe(100);
  });
});

describe('the limit of a recipient', () => {
  test('lets 45 go at once and then one in six seconds', async () => {
    const to = '+12025557777';
    const debt = `insert into send_pacing (phone_number_id, recipient, free_at)
                  values ('${NUMBER}', '12025557777', now() + interval '263 seconds')`;
    await query(stack.database, debt);
    expect((await stack.send(textTo(to))).status).toBe(200);
    const startedAt = performance.now();
    const next = await stack.send(textTo(to));
    expect(next.status).toBe(200);
    expect(performance.now() - startedAt).toBeGreaterThan(2_500);
    // Others are not held back by it.
    const otherAt = performance.now();
    expect((await stack.send(textTo())).status).toBe(200);
    expect(performance.now() - otherAt).toBeLessThan(2_000);
  });

  test('that upstream reports is waited for, and the message goes out', async () => {
    await stack.addFault({ match: 'send', kind: 'status', status: 400, code: 131056, times: 1 });
    const { status } = await stack.send(textTo('+12025557778'));
    expect(status).toBe(200);
    expect(await stack.sendRequests()).toHaveLength(2);
  });

  test('is forgotten when it limits nothing any more', async () => {
    await query(stack.database, `update send_pacing set free_at = now() - interval '1 hour'`);
    await forgetSpentPacing(stack.database, 1_000);
    expect(await query(stack.database, 'select 1 from send_pacing')).toEqual([]);
  });
});
