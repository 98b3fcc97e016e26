import { expect, test } from 'vitest';
import { leavesToOthers, watchLoad } from '../../../src/worker/metrics/worker-metrics.ts';

const peers = { count: 2, rank: 0, isElsewhere: false, isLeader: true };

test.each([
  ['busy, with processors to spare', peers, { eventLoop: 0.9, machineIdle: 0.5 }, true],
  ['not busy', peers, { eventLoop: 0.5, machineIdle: 0.5 }, false],
  ['busy, all on one full machine', peers, { eventLoop: 1, machineIdle: 0.02 }, false],
  [
    'busy, another on another machine',
    { ...peers, isElsewhere: true },
    { eventLoop: 1, machineIdle: 0 },
    true,
  ],
  ['the only one', { ...peers, count: 1 }, { eventLoop: 1, machineIdle: 0.5 }, false],
])('a worker that is %s', (_what, others, load, expected) => {
  expect(leavesToOthers(others, load)).toBe(expected);
});

test('the load of a process that does nothing but compute is seen', async () => {
  const load = watchLoad(50);
  const until = performance.now() + 200;
  while (performance.now() < until) await new Promise((resolve) => setImmediate(resolve));
  expect(load().eventLoop).toBeGreaterThan(0.3);
  expect(load().machineIdle).toBeLessThan(1);
});
