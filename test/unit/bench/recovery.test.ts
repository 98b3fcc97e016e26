import { expect, test } from 'vitest';
import { FAULTS } from '../../../bench/cluster/fault-list.ts';
import { recoveryOf } from '../../../bench/cluster/recovery.ts';
import { type DrillAccount, drillAccounts } from '../../drill/accounts.ts';
import type { LoggedArrival } from '../../drill/receivers.ts';
import type { SentBody } from '../../drill/senders.ts';
import { messageStatus } from '../../support/load/upstream-bodies.ts';

const accounts: DrillAccount[] = drillAccounts(1);
const [fault] = FAULTS;
if (fault === undefined) throw new Error('there are no faults');
const DONE = { fault, startMs: 10_000, healedMs: 30_000, endMs: 40_000 };

/** Bodies with one event each: when it was sent, and after how long it was taken; null: never. */
function recovery(sent: readonly (readonly [sentMs: number, takenAfterMs: number | null])[]) {
  const bodies = sent.map(
    ([firstSentMs], n): SentBody => ({
      wabaId: accounts[0]?.wabaId ?? '',
      events: messageStatus(`m${n}`, 'sent').events,
      bytes: Buffer.alloc(0),
      firstSentTick: n,
      firstSentMs,
      tries: 1,
      repeated: false,
      acknowledgedTick: n,
      acknowledgedMs: firstSentMs,
    }),
  );
  const arrivals = sent.flatMap(([sentMs, afterMs], n) => {
    if (afterMs === null) return [];
    const identity = bodies[n]?.events[0]?.identity ?? '';
    return [
      { endpoint: 0, accepted: true, arrivedMs: sentMs + afterMs, content: { identity } } as LoggedArrival,
    ];
  });
  return recoveryOf(DONE, { accounts, senders: { bodies }, arrivals });
}

test('traffic that takes no longer than usual was never away', () => {
  expect(
    recovery([
      [9_000, 20_000],
      [11_000, 50],
      [39_000, 2_900],
    ]),
  ).toEqual({
    events: 2,
    backMs: 0,
    slowestMs: 2_900,
    late: [],
  });
});

test('it is back after the last event that was late, counted from when that was sent', () => {
  const result = recovery([
    [12_000, 25_000],
    [14_500, 3_100],
    [20_000, 40],
  ]);
  expect(result).toMatchObject({ events: 3, backMs: 4_500, slowestMs: 25_000 });
  expect(result.late).toHaveLength(2);
  expect(result.late[1]).toMatch(/sent after 4\.5 s, took 3\.1 s$/);
});

test('what never arrives keeps it away', () => {
  expect(
    recovery([
      [11_000, 10],
      [38_000, null],
    ]),
  ).toMatchObject({
    backMs: 28_000,
    slowestMs: Number.POSITIVE_INFINITY,
  });
});
