import { expect, test } from 'vitest';
import { EndpointLimiter } from '../../../src/engine/deliveries/loop/attempt-limits.ts';
import { DueFinder } from '../../../src/engine/deliveries/loop/claiming.ts';
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
  for (let n = 0; n < 100 && asked.lately <= 5; n += 1) {
    const shares = await finder.find(10);
    expect(shares.map(({ endpointId }) => endpointId)).toEqual(['7']);
    finder.took(shares, [], 10);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  expect(asked.lately).toBeGreaterThan(5);
  expect(asked.walks).toBeGreaterThan(0);
  expect(asked.walks).toBeLessThanOrEqual(3);
});

test('endpoints whose rate limit allows nothing are not looked at until it does', async () => {
  const rows = Array.from({ length: 5_000 }, (_, n) => ({
    endpointId: String(n + 1),
    replay: false,
    position: String(n + 1),
    isOpen: true,
    maxInFlight: null,
    ratePerSecond: 1,
  }));
  let pages = rows;
  const raw = async (text: string) => {
    if (!text.includes('recursive')) return { rows: [] };
    const found = pages;
    pages = [];
    return { rows: found };
  };
  let looks = 0;
  // It stands until they sleep, however slow the machine is.
  let standsAtMs: number | null = performance.now();
  const limiter = new EndpointLimiter(() => {
    looks += 1;
    return standsAtMs ?? performance.now();
  });
  const finder = new DueFinder({ database: { raw } as unknown as Database, limiter });
  const shares = await finder.find(rows.length);
  expect(shares).toHaveLength(rows.length);
  for (const { endpointId } of shares) limiter.start(endpointId);
  finder.took(shares, shares, rows.length);
  // Puts them to sleep.
  expect(await finder.find(10)).toEqual([]);
  expect(finder.isWaiting('1')).toBe(true);
  looks = 0;
  standsAtMs = null;
  const startMs = performance.now();
  let found = await finder.find(10);
  while (found.length === 0) {
    expect(looks, 'while they wait for their tokens').toBeLessThan(100);
    await new Promise((resolve) => setTimeout(resolve, 10));
    found = await finder.find(10);
    if (performance.now() - startMs > 10_000) throw new Error('none of them got its token');
  }
  // Tokens come one after the other.
  expect(found.length).toBeLessThanOrEqual(10);
});

test('an endpoint with more than it may have keeps its turn behind those that got nothing', async () => {
  const rows = ['1', '2', '3'].map((endpointId) => ({
    endpointId,
    replay: false,
    position: endpointId,
    isOpen: true,
    maxInFlight: null,
    ratePerSecond: null,
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

test('endpoints whose attempts wait for their runs share what may wait; the others wait for nobody', async () => {
  const row = { replay: false, position: '5', isOpen: true, maxInFlight: 500, ratePerSecond: null };
  const rows = ['1', '2', '3', '9'].map((endpointId) => ({ ...row, endpointId }));
  const raw = async (text: string) => ({ rows: text.includes('recursive') ? rows : [] });
  const holds = { free: () => 8, areNeeded: (endpointId: string) => endpointId !== '9' };
  const tools = { database: { raw } as unknown as Database, limiter: new EndpointLimiter(), holds };
  const shares = await new DueFinder(tools).find(1_000);
  expect(shares.map(({ endpointId, share }) => [endpointId, share])).toEqual([
    ['1', 4],
    ['2', 2],
    ['3', 1],
    ['9', 10],
  ]);
});
