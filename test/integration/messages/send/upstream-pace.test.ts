import { expect, test } from 'vitest';
import { followNumbers } from '../../../../src/features/accounts/followed-numbers.ts';
import { setNumberPace } from '../../../../src/features/accounts/number-pace.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { sendingStackOfFile, textTo } from './sending-stack.ts';

const stack = sendingStackOfFile();

/** What upstream lists of the tenant's numbers. */
const listed = (more: { throughput?: string; isInApp?: boolean }) =>
  [stack.number, stack.secondNumber].map((phoneNumberId) => ({
    phoneNumberId,
    displayPhoneNumber: '+1 202-555-0100',
    verifiedName: 'Fixture Store',
    qualityRating: null,
    ...more,
  }));

/** The shortest time between two of six messages at once, in ms. */
async function shortestGap(): Promise<number> {
  const before = await query<{ id: string }>(
    stack.database,
    'select max(message_id) as id from outbound_messages',
  );
  await Promise.all(Array.from({ length: 6 }, () => stack.send(textTo())));
  const rows = await query<{ at: Date }>(
    stack.database,
    'select number_at as at from outbound_messages where waba_id = :wabaId and message_id > :after order by number_at',
    { wabaId: stack.wabaId, after: before[0]?.id ?? 0 },
  );
  const times = rows.map(({ at }) => at.getTime());
  expect(times).toHaveLength(6);
  return Math.min(...times.slice(1).map((at, index) => at - (times[index] ?? 0)));
}

const ACTOR = { name: 'test', requestId: null, ip: null };

test('a number leaves its messages as fast as upstream allows, unless an operator set a rate', async () => {
  const { database, wabaId, number: phoneNumberId } = stack;
  await followNumbers({ database }, wabaId, listed({ throughput: 'STANDARD', isInApp: true }), new Date());
  // 20 a second; times are kept to the millisecond.
  expect(await shortestGap()).toBeGreaterThanOrEqual(49);
  await setNumberPace({ database, actor: ACTOR }, wabaId, { phoneNumberId, messagesPerSecond: 8 });
  expect(await shortestGap()).toBeGreaterThanOrEqual(124);
  await setNumberPace({ database, actor: ACTOR }, wabaId, { phoneNumberId, messagesPerSecond: null });
  await followNumbers({ database }, wabaId, listed({ throughput: 'HIGH' }), new Date());
  const [row] = await query<{ pace: number }>(
    database,
    'select upstream_per_second as pace from phone_numbers where phone_number_id = :phoneNumberId',
    { phoneNumberId },
  );
  expect(row?.pace).toBe(1_000);
});
