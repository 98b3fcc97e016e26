import { expect, test } from 'vitest';
import { query } from '../../../src/platform/postgres/sql.ts';
import { answer, type Behaviour, eventually } from '../../support/webhook-receiver.ts';
import {
  countQueued,
  downServer,
  expectAllInOrder,
  impatientWorkerHere,
  KEYS,
  LADDER,
  workerHere,
} from './down-server.ts';

/** Notes how many requests are answered side by side. */
function sideBySide() {
  const seen = { now: 0, most: 0 };
  const behaviour: Behaviour = async (webhook, response) => {
    seen.now += 1;
    seen.most = Math.max(seen.most, seen.now);
    // Long enough for all that are sent at once to meet.
    await new Promise((resolve) => setTimeout(resolve, 200));
    seen.now -= 1;
    return answer(200)(webhook, response);
  };
  return { seen, behaviour };
}

const MAX_IN_FLIGHT = 2;

test.each<[string, string | null, Behaviour]>([
  ['does not respond', 'timeout', () => null],
  [
    'resets connections',
    'reset',
    (_, response) => {
      response.socket?.resetAndDestroy();
      return null;
    },
  ],
  ['returns 429', null, answer(429)],
  ['returns 408', null, answer(408)],
])(
  'what waits because the server %s comes back too, never more at once than the endpoint allows',
  async (_, errorClass, whileDown) => {
    const { database, receiver, send } = await downServer(
      { whileDown, maxInFlight: MAX_IN_FLIGHT },
      errorClass === 'timeout' ? impatientWorkerHere : workerHere,
    );
    const failures = await query<{ errorClass: string | null; status: number | null }>(
      database,
      `select distinct error_class as "errorClass", status_code as status from attempts`,
    );
    expect(failures).toEqual([{ errorClass, status: errorClass === null ? expect.any(Number) : null }]);
    const { seen, behaviour } = sideBySide();
    receiver.behave(behaviour);
    await send('wamid.new', 'sent');
    await eventually('all arrive', async () => (await countQueued(database)) === 0);
    expectAllInOrder(receiver.received);
    expect(receiver.received).toHaveLength(KEYS.length * (2 + LADDER.length) + 1);
    expect(seen.most).toBe(MAX_IN_FLIGHT);
  },
);
