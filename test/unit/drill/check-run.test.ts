import { describe, expect, test } from 'vitest';
import { drillAccounts } from '../../drill/accounts.ts';
import { checkRun, type Offences } from '../../drill/check-run.ts';
import type { LoggedArrival } from '../../drill/receivers.ts';
import type { SentBody } from '../../drill/senders.ts';
import { messageStatus } from '../../support/load/upstream-bodies.ts';

const accounts = drillAccounts(1);
const wabaId = accounts[0]?.wabaId ?? '';

/** A body with one status, acknowledged between its tick and the next. */
function body(status: string, tick: number, acknowledged = true): SentBody {
  return {
    wabaId,
    events: messageStatus('m1', status).events,
    firstSentTick: tick,
    firstSentMs: tick,
    acknowledgedTick: acknowledged ? tick + 0.5 : null,
    acknowledgedMs: acknowledged ? tick + 0.5 : null,
    bytes: Buffer.alloc(0),
    tries: 1,
    repeated: false,
  };
}

function arrival(
  status: string,
  sequence: number,
  tick: number,
  more: Partial<LoggedArrival> = {},
): LoggedArrival {
  const accepted = more.accepted ?? true;
  return {
    n: tick,
    endpoint: 0,
    webhookId: `evt_${status}`,
    deliveryId: '1',
    sequence,
    attempt: 1,
    bodyHash: `hash of ${status}`,
    content: {
      wabaId,
      eventType: 'status',
      eventId: `m1_${status}`,
      identity: `status m1 ${status}`,
      key: 'status m1',
    },
    answer: accepted ? 'ok' : 'error',
    arrivedTick: tick,
    arrivedMs: tick,
    answeredTick: tick + 0.5,
    answeredMs: tick + 0.5,
    accepted,
    ...more,
  };
}

const bodies = [body('sent', 1), body('delivered', 2)];

/** The names of what was found, without the empty ones. */
function found(arrivals: LoggedArrival[], sent: SentBody[] = bodies): (keyof Offences)[] {
  const offences = checkRun({ accounts, bodies: sent, arrivals });
  return (Object.keys(offences) as (keyof Offences)[]).filter((name) => offences[name].length > 0);
}

describe('the check of a drill', () => {
  test('finds nothing where all arrived in order, also with a retry and a late duplicate', () => {
    const failed = arrival('sent', 1, 1, { accepted: false });
    const late = arrival('sent', 1, 9);
    expect(found([failed, arrival('sent', 1, 2), arrival('delivered', 2, 3), late])).toEqual([]);
  });

  test('finds an acknowledged event that never came, and one that came but was never taken', () => {
    expect(found([arrival('sent', 1, 1)])).toEqual(['lost']);
    expect(found([arrival('sent', 1, 1), arrival('delivered', 2, 2, { accepted: false })])).toEqual(['lost']);
  });

  test('does not ask for an event that was never acknowledged', () => {
    expect(found([arrival('sent', 1, 1)], [body('sent', 1), body('delivered', 2, false)])).toEqual([]);
  });

  test('finds an event that came before its predecessor was taken', () => {
    const failed = arrival('sent', 1, 1, { accepted: false });
    expect(found([failed, arrival('delivered', 2, 2), arrival('sent', 1, 3)])).toEqual(['disordered']);
    const slow = arrival('sent', 1, 1, { answeredTick: 4 });
    expect(found([slow, arrival('delivered', 2, 2)])).toEqual(['disordered']);
  });

  test('finds an order that contradicts upstream though the sequences look right', () => {
    expect(found([arrival('delivered', 1, 1), arrival('sent', 2, 2)])).toEqual(['misordered']);
  });

  test('accepts either order of two bodies that were on their way together', () => {
    const together = [{ ...body('sent', 1), acknowledgedTick: 5 }, body('delivered', 2)];
    expect(found([arrival('delivered', 1, 1), arrival('sent', 2, 2)], together)).toEqual([]);
  });

  test('finds a body that changed between attempts', () => {
    const again = arrival('sent', 1, 4, { bodyHash: 'another' });
    expect(found([arrival('sent', 1, 1), arrival('delivered', 2, 2), again])).toEqual(['altered']);
  });

  test('finds an upstream event that became two', () => {
    const second = arrival('sent', 1, 4, { webhookId: 'evt_other' });
    expect(found([arrival('sent', 1, 1), arrival('delivered', 2, 2), second])).toEqual(['doubled']);
  });

  test('finds what came to the wrong tenant, to a redirect, or out of nowhere', () => {
    const all = [arrival('sent', 1, 1), arrival('delivered', 2, 2)];
    const names = { eventId: 'm1_sent', identity: 'status m1 sent', key: 'status m1' };
    const content = { wabaId: 'another', eventType: 'status', ...names };
    expect(found([...all, arrival('sent', 1, 5, { content })])).toEqual(['misdirected']);
    expect(found([...all, arrival('sent', 1, 5, { answer: 'moved' })])).toEqual(['misdirected']);
    expect(found([...all, arrival('read', 3, 5)])).toEqual(['misdirected']);
    expect(found([...all, arrival('sent', 1, 5, { content: null })])).toEqual(['misdirected']);
  });
});
