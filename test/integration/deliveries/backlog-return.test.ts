import { expect, test } from 'vitest';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { answer, type Behaviour, eventually } from '../../support/webhook-receiver.ts';
import {
  countQueued,
  downServer,
  expectAllInOrder,
  KEYS,
  keyOf,
  LADDER,
  succeeded,
  waitingFor,
  workerHere,
  workerProcess,
} from './down-server.ts';

/** In how many minutes what waits is brought forward; null: it is not planned. */
async function minutesUntilReturn(database: Database): Promise<number | null> {
  const [row] = await query<{ minutes: number | null }>(
    database,
    `select cast(extract(epoch from backlog_due_at - now()) / 60 as float8) as minutes from endpoint_health`,
  );
  return row?.minutes ?? null;
}

test('a server that is back gets all that waits for it after one success, without help and in order', async () => {
  const { database, receiver, send } = await downServer({}, workerHere);
  receiver.behave(answer(200));
  await send('wamid.new', 'sent');
  await eventually('all arrive', async () => (await countQueued(database)) === 0);
  expectAllInOrder(receiver.received);
  // One attempt that fails, its retry, and the one that was brought forward.
  expect(receiver.received).toHaveLength(KEYS.length * (2 + LADDER.length) + 1);
});

test('what failed before the breaker opened goes out after the first good probe, too', async () => {
  const { database, receiver, send } = await downServer({}, workerHere);
  for (let n = 0; n < 10; n += 1) await send(`wamid.more${n}`, 'sent');
  const isProbing = () => query(database, `select 1 from endpoint_health where mode = 'probing'`);
  await eventually('the breaker opens', async () => (await isProbing()).length, { is: 1 });
  expect(await waitingFor(database)).toHaveLength(KEYS.length);
  receiver.behave(answer(200));
  await eventually('all arrive', async () => (await countQueued(database)) === 0);
  expectAllInOrder(receiver.received);
});

test('what failed for itself keeps its time', async () => {
  const own = KEYS.slice(0, 2);
  const failsFor: Behaviour = (webhook, response) =>
    answer(own.includes(keyOf(webhook)) ? 422 : 503)(webhook, response);
  const { database, receiver, send } = await downServer({ whileDown: failsFor }, workerHere);
  receiver.behave(answer(200));
  const before = await waitingFor(database);
  await send('wamid.new', 'sent');
  const rest = own.length * LADDER.length;
  await eventually('the others arrive', async () => (await countQueued(database)) === rest);
  const after = await waitingFor(database);
  expect(after).toHaveLength(own.length);
  expect(before).toEqual(expect.arrayContaining(after));
});

test('a server that is back for a moment gets each delivery once more, and none of its retries is used up', async () => {
  const { database, receiver, send } = await downServer({}, workerHere);
  const before = await waitingFor(database);
  const onlyNew: Behaviour = (webhook, response) =>
    answer(keyOf(webhook).startsWith('wamid.new') ? 200 : 503)(webhook, response);
  receiver.behave(onlyNew);
  const downUntil = receiver.received.length;
  await send('wamid.new1', 'sent');
  const tried = () => receiver.received.slice(downUntil).filter((webhook) => KEYS.includes(keyOf(webhook)));
  await eventually('each is tried', () => tried().length === KEYS.length);
  await eventually('and waits', async () => (await waitingFor(database)).length, { is: KEYS.length });
  for (const [n, { id, at, retriesUsed }] of (await waitingFor(database)).entries()) {
    expect({ id, retriesUsed }).toEqual({ id: before[n]?.id, retriesUsed: before[n]?.retriesUsed });
    expect(at).toBeCloseTo(before[n]?.at ?? 0, 0);
  }
  // The next success changes nothing soon, however often the server comes and goes.
  let successes = 1;
  await eventually('the next return is planned', async () => {
    if ((await minutesUntilReturn(database)) !== null) return true;
    // A failure of before that is noted only now takes the plan back, and the next success makes it again.
    successes += 1;
    await send(`wamid.new${successes}`, 'sent');
    return false;
  });
  expect(await minutesUntilReturn(database)).toBeGreaterThan(10);
  expect(tried()).toHaveLength(KEYS.length);
  // And then everything arrives.
  receiver.behave(answer(200));
  await execute(database, 'update endpoint_health set backlog_due_at = now()', {});
  await eventually('all arrive', async () => (await countQueued(database)) === 0);
  expectAllInOrder(receiver.received);
});

test('no kill of the worker loses that something is to be brought forward', async () => {
  const { database, url, receiver, worker, send } = await downServer({}, workerProcess);
  await worker.kill();
  receiver.behave(answer(200));
  await send('wamid.new', 'sent');
  const second = await workerProcess(url);
  await eventually('one success', () => succeeded(receiver.received).length > 0);
  await eventually('is recorded', async () => (await countQueued(database)) <= KEYS.length * LADDER.length);
  await second.kill();
  await workerProcess(url);
  await eventually('all arrive', async () => (await countQueued(database)) === 0);
  // What a process was killed behind, and had not recorded, is sent again with its id.
  const byId = Map.groupBy(succeeded(receiver.received), ({ headers }) => headers['webhook-id']);
  expectAllInOrder([...byId.values()].flatMap(([first]) => first ?? []));
});
