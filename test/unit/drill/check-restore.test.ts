import { expect, test } from 'vitest';
import { drillAccounts } from '../../drill/accounts.ts';
import type { LoggedArrival } from '../../drill/receivers.ts';
import { checkRestored, isForgotten } from '../../drill/restore/check-restore.ts';
import type { SentBody } from '../../drill/senders.ts';
import { messageStatus } from '../../support/load/upstream-bodies.ts';

const accounts = drillAccounts(1);
const wabaId = accounts[0]?.wabaId ?? '';
/** The database was taken back from 20 to 10. */
const GAPS = [{ fromMs: 10, toMs: 20 }];

function body(status: string, atMs: number): SentBody {
  return {
    wabaId,
    events: messageStatus('m1', status).events,
    bytes: Buffer.alloc(0),
    firstSentTick: atMs,
    firstSentMs: atMs,
    tries: 1,
    repeated: false,
    acknowledgedTick: atMs + 0.1,
    acknowledgedMs: atMs + 0.1,
  };
}

function arrival(status: string, sequence: number, atMs: number) {
  const names = { eventId: `m1_${status}`, identity: `status m1 ${status}`, key: 'status m1' };
  return {
    n: atMs,
    endpoint: 0,
    webhookId: `evt_${status}`,
    deliveryId: '1',
    sequence,
    attempt: 1,
    bodyHash: status,
    content: { wabaId, eventType: 'status', ...names },
    answer: 'ok' as const,
    arrivedTick: atMs,
    arrivedMs: atMs,
    answeredTick: atMs + 0.1,
    answeredMs: atMs + 0.1,
    accepted: true,
  };
}

/** The names of what was found, without the empty ones. */
function found(bodies: SentBody[], arrivals: LoggedArrival[]): string[] {
  const offences = checkRestored({ accounts, bodies, arrivals, gaps: GAPS });
  return Object.entries(offences).flatMap(([name, list]) => (list.length > 0 ? [name] : []));
}

test('what came in within the gap may be lost, and may come back under another webhook-id with a later number', () => {
  const [sent, delivered] = [body('sent', 5), body('delivered', 15)];
  expect([sent, delivered].map((one) => isForgotten(one, GAPS))).toEqual([false, true]);
  expect(found([sent, delivered], [arrival('sent', 1, 6), arrival('delivered', 2, 16)])).toEqual([]);
  const again = { ...arrival('delivered', 1_002, 26), webhookId: 'evt_2', bodyHash: 'another' };
  expect(
    found([sent, body('delivered', 25)], [arrival('sent', 1, 6), arrival('delivered', 2, 16), again]),
  ).toEqual([]);
});

test('what was known before the gap has to come, though an endpoint had it within the gap', () => {
  expect(found([body('sent', 5)], [arrival('sent', 1, 15)])).toEqual(['lost']);
  expect(found([body('sent', 5)], [arrival('sent', 1, 15), arrival('sent', 1, 21)])).toEqual([]);
});

test('what upstream sends again has to come again', () => {
  expect(found([body('sent', 25)], [arrival('sent', 1, 15)])).toEqual(['lost']);
});

test('one event has one eventId, and one number is of one event', () => {
  const { content } = arrival('sent', 1, 6);
  const renamed = { ...arrival('sent', 1, 21), content: { ...content, eventId: 'other' } };
  expect(found([body('sent', 5)], [arrival('sent', 1, 15), renamed])).toEqual(['renamed']);
  const taken = [arrival('sent', 1, 15), arrival('delivered', 1, 26)];
  expect(found([body('sent', 15), body('delivered', 25)], taken)).toEqual(['renumbered']);
});
