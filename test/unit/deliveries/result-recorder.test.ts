import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { MadeAttempt } from '../../../src/engine/deliveries/attempt/made-attempt.ts';
import { makeEndpointHealth } from '../../../src/engine/deliveries/breaker.ts';
import { ResultRecorder } from '../../../src/engine/deliveries/loop/result-recorder.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { madeAttempt } from './made-attempts.ts';
import { response } from './send-results.ts';

const STATEMENT_MS = 10;
const GROUPS = 6;

/** Records a new result each millisecond; returns the shortest time between two statements. */
async function shortestGapMs({
  promoted,
  isFollowed = false,
}: {
  promoted: number;
  isFollowed?: boolean;
}): Promise<number> {
  const { started, ended, recorder } = openRecorder({ promoted });
  for (let n = 0; ended.length < GROUPS; n += 1) {
    recorder.add({ ...madeAttempt(response(200), n), isFollowed });
    await sleep(1);
  }
  return Math.min(...started.slice(1).map((ms, index) => ms - (ended[index] ?? 0)));
}

/** A recorder, and when its statements began and ended, with the sizes of their groups. */
function openRecorder({
  promoted,
  isSlotWanted = () => false,
}: {
  promoted: number;
  isSlotWanted?: (() => boolean) | undefined;
}) {
  const started: number[] = [];
  const ended: number[] = [];
  const sizes: number[] = [];
  const raw = async (_text: string, { deliveryId: ids }: { deliveryId: string[] }) => {
    started.push(performance.now());
    sizes.push(ids.length);
    await new Promise((resolve) => setTimeout(resolve, STATEMENT_MS));
    ended.push(performance.now());
    return { rows: ids.map((id) => ({ settled: id, promoted, deliveryId: null })), rowCount: ids.length };
  };
  const recorder = new ResultRecorder(
    {
      database: { raw } as unknown as Database,
      health: makeEndpointHealth(),
      runLimits: { perEndpoint: 20, overall: 200, mayStart: () => true, takeStart: () => true },
      worker: 'test',
      onAttempt: () => undefined,
      gate: { isOpen: () => true, check: async () => true },
      onTrouble: (error) => {
        throw error;
      },
    },
    {
      giveUpMs: 1_000,
      followerClaims: () => null,
      isSlotWanted,
      onRecorded: () => undefined,
      onHeld: () => undefined,
    },
  );
  return { started, ended, sizes, recorder };
}

/** Has one result recorded, so that the recorder rests, and adds `count` more; returns what is recorded within 60 ms. */
async function recordedEarly(
  count: number,
  then: (recorder: Pick<ResultRecorder<MadeAttempt>, 'hurry'>) => void,
  { run = null, isSlotWanted }: { run?: object | null; isSlotWanted?: () => boolean } = {},
) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const { sizes, recorder } = openRecorder({ promoted: 0, isSlotWanted });
  recorder.add(madeAttempt(response(200)));
  await vi.advanceTimersByTimeAsync(STATEMENT_MS / 2);
  for (let n = 1; n <= count; n += 1) recorder.add({ ...madeAttempt(response(200), n), run });
  then(recorder);
  await vi.advanceTimersByTimeAsync(60);
  const early = sizes.slice(1);
  await vi.advanceTimersByTimeAsync(60);
  expect(sizes).toEqual([1, count]);
  return early;
}

describe('results are recorded in groups', () => {
  test('with a rest after each, so that groups grow with the load', async () => {
    expect(await shortestGapMs({ promoted: 0 })).toBeGreaterThan(1.5 * STATEMENT_MS);
  });

  test('without a rest where the next of a lane waits for the record', async () => {
    expect(await shortestGapMs({ promoted: 1 })).toBeLessThan(STATEMENT_MS);
  });

  test('with a rest that ends when something comes behind which others wait', async () => {
    expect(await shortestGapMs({ promoted: 0, isFollowed: true })).toBeLessThan(STATEMENT_MS);
  });
});

describe('successes wait for a tenth of a second', () => {
  const nothing = () => undefined;

  test('and are then recorded together, while nothing waits for them', async () => {
    expect(await recordedEarly(10, nothing)).toEqual([]);
  });

  type Case = [string, number, Parameters<typeof recordedEarly>[1], Parameters<typeof recordedEarly>[2]?];
  test.each<Case>([
    ['they are many', 64, nothing],
    ['deliveries were published behind others', 10, (recorder) => recorder.hurry()],
    ['a run waits for one', 1, nothing, { run: {} }],
    ['others may wait for the slot of one', 1, nothing, { isSlotWanted: () => true }],
  ])('unless %s', async (_why, count, then, awaited) => {
    expect(await recordedEarly(count, then, awaited)).toEqual([count]);
  });
});

describe('a group that the database refuses', () => {
  const refusal = Object.assign(new Error('invalid input'), { code: '22P02' });
  const away = Object.assign(new Error('the connection was lost'), { code: '08006' });

  /** Records a group of eight and returns what was told of each of its parts. */
  async function record(fails: (ids: string[], call: number) => Error | null) {
    let calls = 0;
    const raw = async (_text: string, { deliveryId: ids }: { deliveryId?: string[] | string }) => {
      // Only the queue learns of a claim that is put off.
      if (!Array.isArray(ids)) return { rows: [], rowCount: 1 };
      calls += 1;
      const failure = fails(ids, calls);
      if (failure !== null) throw failure;
      return {
        rows: ids.map((id) => ({ settled: id, promoted: 1, deliveryId: null })),
        rowCount: ids.length,
      };
    };
    const database = { raw, transaction: (work: (trx: unknown) => unknown) => work({ raw }) };
    const parts: Record<string, string | null>[] = [];
    const troubles: unknown[] = [];
    const recorder = new ResultRecorder(
      {
        database: database as unknown as Database,
        health: makeEndpointHealth(),
        runLimits: { perEndpoint: 20, overall: 200, mayStart: () => true, takeStart: () => true },
        worker: 'test',
        onAttempt: () => undefined,
        gate: { isOpen: () => true, check: async () => true },
        onTrouble: (error) => troubles.push(error),
      },
      {
        giveUpMs: 5_000,
        followerClaims: () => null,
        isSlotWanted: () => false,
        onRecorded: ({ outcomes }) =>
          parts.push(
            Object.fromEntries(
              outcomes.map(({ attempt, outcome }) => [attempt.deliveryId, outcome?.state ?? null]),
            ),
          ),
        onHeld: () => undefined,
      },
    );
    for (let n = 0; n < 8; n += 1) recorder.add(madeAttempt(response(200), n));
    const known = () => parts.flatMap((part) => Object.keys(part));
    while (known().length < 8) await sleep(5);
    return { states: Object.assign({}, ...parts), known: known(), parts, troubles };
  }

  test('for one of its attempts, records all others, each once, and puts that one off', async () => {
    const { states, known, troubles } = await record((ids) => (ids.includes('delivery-5') ? refusal : null));
    expect(known).toHaveLength(8);
    expect(states).toEqual({
      ...Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`delivery-${n}`, 'delivered'])),
      'delivery-5': 'retrying',
    });
    expect(troubles).toEqual([refusal]);
  });

  test('and that loses its connection in its second half, tells at once of the first half', async () => {
    const { states, parts } = await record((ids, call) => {
      if (call === 1) return refusal;
      return call === 3 && ids.includes('delivery-7') ? away : null;
    });
    expect(parts.map((part) => Object.keys(part).length)).toEqual([4, 4]);
    expect(new Set(Object.values(states))).toEqual(new Set(['delivered']));
  });
});
