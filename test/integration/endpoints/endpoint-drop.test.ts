import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { releaseEvent } from '../../../src/engine/queue/enqueue.ts';
import { type DropOptions, dropWaiting } from '../../../src/engine/queue/remove.ts';
import { type Claim, findClaims } from '../../../src/engine/queue/settle.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { newQueuedRow, queueRows } from '../../support/queued-rows.ts';
import { seededDice } from '../../support/seeded-dice.ts';
import { settleDelivered as settle } from '../../support/settle-rows.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';

const WABA = '900000000000101';
const REASON = 'dropped by a test';

async function twoEndpoints() {
  const { database } = await seededDatabase(24);
  const { id: endpoint } = await addEndpoint(database, WABA, 'https://a.example');
  const { id: other } = await addEndpoint(database, WABA, 'https://b.example');
  return { database, endpoint, other };
}

async function claim(database: Database, endpointId: string, limit: number, leaseMs: number) {
  const token = randomUUID();
  const rows = await query<{ id: string }>(
    database,
    `update delivery_queue set state = 'claimed', token = :token, lease_until = clock_timestamp() + :leaseMs * interval '1 ms'
      where ctid = any (array(select ctid from delivery_queue where endpoint_id = :endpointId and state = 'due'
                               order by random() limit :limit for update skip locked)) and state = 'due'
     returning delivery_id as id`,
    { token, leaseMs, endpointId, limit },
  );
  return rows.map(({ id }) => ({ deliveryId: id, token }));
}

/** Records again, as a worker does, what was not recorded because a drop had locked its row. */
async function settleAll(database: Database, claims: readonly Claim[]): Promise<string[]> {
  const settled = await settle(database, claims);
  const left = await findClaims(database, claims);
  const again = claims.filter(({ deliveryId }) => left.has(deliveryId));
  return again.length === 0 ? settled : [...settled, ...(await settleAll(database, again))];
}

const drop = (database: Database, endpointId: string, options: DropOptions = { reason: REASON }) =>
  dropWaiting(database, endpointId, options);

async function logStates(database: Database): Promise<Map<string, { state: string; error: string | null }>> {
  const rows = await query<{ id: string; state: string; error: string | null }>(
    database,
    'select id, state, last_error as error from deliveries',
  );
  return new Map(rows.map(({ id, ...row }) => [id, row]));
}

/** Lanes that have not exactly one head, whose head is not the oldest, or is in a state that it cannot be in. */
async function brokenLanes(database: Database): Promise<unknown[]> {
  return await query(
    database,
    `select endpoint_id, lane from delivery_queue group by 1, 2
     having count(*) filter (where state <> 'queued') <> 1
         or min(position) <> min(position) filter (where state <> 'queued')
         or bool_or(state = 'unreleased' and released) or bool_or(state = 'due' and not released)`,
  );
}

describe('dropping what waits', () => {
  test('drops all that was there before, keeps all that came after, and leaves every lane with its head', async () => {
    const { database, endpoint, other } = await twoEndpoints();
    const batch = fc.array(fc.record({ lane: fc.nat(5), held: fc.boolean(), elsewhere: fc.boolean() }), {
      minLength: 1,
      maxLength: 8,
    });
    const batches = fc.array(batch, { minLength: 1, maxLength: 10 });
    await fc.assert(
      fc.asyncProperty(batches, batches, fc.integer(), async (before, during, seed) => {
        await execute(database, 'delete from delivery_queue');
        await execute(database, 'delete from deliveries');
        const dice = seededDice(seed);
        const rowsOf = (specs: (typeof before)[number]) =>
          specs.map(({ lane, held, elsewhere }) =>
            newQueuedRow(elsewhere ? other : endpoint, `lane ${lane}`, !held),
          );
        const earlier = before.map(rowsOf);
        for (const rows of earlier) await queueRows(database, rows);
        await claim(database, endpoint, 1, -1_000);
        const live = await claim(database, endpoint, 2, 60_000);
        await execute(
          database,
          `update delivery_queue set state = 'retrying', next_attempt_at = now()
            where endpoint_id = :endpoint and state = 'due' and random() < 0.5`,
          { endpoint },
        );

        const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, dice() * ms));
        const positions = new Map<string, bigint>();
        const publishers = during.map(async (specs) => {
          await pause(8);
          const rows = rowsOf(specs);
          for (const [id, position] of await queueRows(database, rows)) positions.set(id, position);
          for (const row of rows.filter(({ released }) => !released)) {
            await pause(4);
            await database.transaction((trx) => releaseEvent(trx, row.eventUuid));
          }
          return rows;
        });
        const settled: string[] = [];
        const settler = async () => {
          for (let turn = 0; turn < 8; turn += 1) {
            await pause(3);
            settled.push(...(await settleAll(database, await claim(database, endpoint, 3, 60_000))));
          }
        };
        const dropping = pause(6).then(() => drop(database, endpoint));
        const [{ dropped, upToPosition }, later] = await Promise.all([
          dropping,
          Promise.all(publishers),
          settler(),
          settler(),
        ]);

        expect(await brokenLanes(database)).toEqual([]);
        const states = await logStates(database);
        const queued = new Set(
          (await query<{ id: string }>(database, 'select delivery_id as id from delivery_queue')).map(
            (row) => row.id,
          ),
        );
        const isLive = new Set(live.map((row) => row.deliveryId));
        for (const row of earlier.flat()) {
          if (settled.includes(row.deliveryId)) continue;
          const stays = row.endpointId === other || isLive.has(row.deliveryId);
          expect(states.get(row.deliveryId)).toEqual(
            stays ? { state: 'pending', error: null } : { state: 'dropped', error: REASON },
          );
          expect(queued.has(row.deliveryId)).toBe(stays);
        }
        for (const row of later.flat()) {
          if (settled.includes(row.deliveryId)) continue;
          const isAfter = (positions.get(row.deliveryId) ?? 0n) > BigInt(upToPosition);
          const isDropped = states.get(row.deliveryId)?.state === 'dropped';
          expect(queued.has(row.deliveryId)).toBe(!isDropped);
          if (isAfter || row.endpointId === other) expect(isDropped).toBe(false);
        }
        expect([...states.values()].filter(({ state }) => state === 'dropped')).toHaveLength(dropped);
      }),
      { numRuns: 30, endOnFailure: true },
    );
  });

  test('works through many lanes and one deep lane, in transactions that stay small', async () => {
    const { database, endpoint, other } = await twoEndpoints();
    const wide = Array.from({ length: 1_203 }, (_, n) => newQueuedRow(endpoint, `wide ${n}`));
    const deep = Array.from({ length: 1_203 }, () => newQueuedRow(endpoint, 'deep'));
    const elsewhere = [newQueuedRow(other, 'deep')];
    await queueRows(database, [...wide, ...deep, ...elsewhere]);
    expect(await drop(database, endpoint)).toMatchObject({ dropped: 2_406 });
    expect(await query(database, 'select delivery_id as "deliveryId" from delivery_queue')).toMatchObject(
      elsewhere.map(({ deliveryId }) => ({ deliveryId })),
    );
    expect(await drop(database, endpoint)).toMatchObject({ dropped: 0 });
  });

  test('what an attempt is sending stays, unless its endpoint is gone', async () => {
    const { database, endpoint } = await twoEndpoints();
    const rows = [newQueuedRow(endpoint, 'a'), newQueuedRow(endpoint, 'a'), newQueuedRow(endpoint, 'b')];
    await queueRows(database, rows);
    const claims = await claim(database, endpoint, 2, 60_000);
    expect(await drop(database, endpoint)).toMatchObject({ dropped: 1 });
    expect(await drop(database, endpoint, { reason: REASON, underWayToo: true })).toMatchObject({
      dropped: 2,
    });
    expect(await settle(database, claims)).toEqual([]);
  });

  test('ends where a lane has lost its head, which nothing can follow, and pauses before it looks again', async () => {
    const { database, endpoint } = await twoEndpoints();
    await queueRows(
      database,
      ['a', 'a', 'b'].map((lane) => newQueuedRow(endpoint, lane)),
    );
    await execute(database, `delete from delivery_queue where lane = 'a' and state <> 'queued'`);
    let statements = 0;
    const counted: Database = {
      ...database,
      raw: (...given) => {
        statements += 1;
        return database.raw(...given);
      },
    };
    const ending = AbortSignal.timeout(10_000);
    expect(await drop(counted, endpoint, { reason: REASON, ending })).toMatchObject({ dropped: 1 });
    expect(ending.aborted).toBe(false);
    expect(statements).toBeLessThan(50);
  });

  test('a delivery can be dropped before its event is released, which then goes out elsewhere only', async () => {
    const { database, endpoint, other } = await twoEndpoints();
    const [here, there] = [newQueuedRow(endpoint, 'a', false), newQueuedRow(other, 'a', false)];
    await queueRows(database, [here, { ...there, eventUuid: here.eventUuid }, newQueuedRow(endpoint, 'a')]);
    expect(await drop(database, endpoint)).toMatchObject({ dropped: 2 });
    await database.transaction((trx) => releaseEvent(trx, here.eventUuid));
    expect(await query(database, 'select endpoint_id as id, state from delivery_queue')).toEqual([
      { id: other, state: 'due' },
    ]);
  });
});
