import { expect, test } from 'vitest';
import { EndpointLimiter } from '../../../src/deliveries/loop/attempt-limits.ts';
import { DueFinder } from '../../../src/deliveries/loop/claiming.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';

const WALK_MS = 30;

/** Answers with one due delivery of endpoint 7, slowly where all endpoints are walked over. */
function slowDatabase() {
  const asked = { walks: 0, lately: 0 };
  const row = { endpointId: '7', replay: false, position: '5', isOpen: true };
  const raw = async (text: string) => {
    if (text.includes('sequence')) return { rows: [{ position: '10' }] };
    if (text.includes('recursive')) {
      asked.walks += 1;
      await new Promise((resolve) => setTimeout(resolve, WALK_MS));
    } else asked.lately += 1;
    return { rows: [{ ...row, maxInFlight: null, ratePerSecond: null }] };
  };
  return { asked, database: { raw } as unknown as Database };
}

test('walks that take long are made a tenth of the time; in between, what is new is found', async () => {
  const { asked, database } = slowDatabase();
  const finder = new DueFinder({ database, limiter: new EndpointLimiter() });
  const startMs = performance.now();
  while (performance.now() - startMs < 20 * WALK_MS) {
    const shares = await finder.find(10);
    expect(shares.map(({ endpointId }) => endpointId)).toEqual(['7']);
    finder.took(shares, [], 10);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  expect(asked.walks).toBeGreaterThan(0);
  expect(asked.walks).toBeLessThanOrEqual(3);
  expect(asked.lately).toBeGreaterThan(5);
});

test('an endpoint with more than it may have keeps its turn behind those that got nothing', async () => {
  const rows = ['1', '2', '3'].map((endpointId) => ({
    ...{ endpointId, replay: false, position: endpointId, isOpen: true },
    ...{ maxInFlight: null, ratePerSecond: null },
  }));
  const raw = async (text: string) => ({ rows: text.includes('recursive') ? rows : [] });
  const finder = new DueFinder({
    database: { raw } as unknown as Database,
    limiter: new EndpointLimiter(),
  });
  const served: string[] = [];
  for (let turn = 0; turn < 4; turn += 1) {
    const shares = await finder.find(2);
    const [first] = shares;
    if (first === undefined) throw new Error('nothing is due');
    served.push(first.endpointId);
    // As many as were asked for are of the first.
    finder.took(shares, [first, { ...first, position: `${first.position}0` }], 2);
    expect(finder.isWaiting(first.endpointId)).toBe(true);
  }
  expect(served).toEqual(['1', '2', '3', '1']);
});
