import { expect, test } from 'vitest';
import { comparedScenarios, comparisonText } from '../../../bench/peers/compare-peers.ts';
import type { Figures } from '../../../bench/report/figures.ts';
import { listScenarios } from '../../../bench/scenarios.ts';

const measured = (scenario: string, p50: number, eventsPerSecond: number) =>
  ({ scenario, latencyMs: { p50, p95: 2 * p50, p99: 4 * p50 }, eventsPerSecond }) as Figures;

test('each load goes to the product first and then to every peer, and differs in nothing else', () => {
  const compared = comparedScenarios(listScenarios(false));
  expect(compared.map(({ name }) => name).slice(0, 3)).toEqual([
    'message-50',
    'message-50/graphile-worker',
    'message-50/bullmq',
  ]);
  const [ours, ...theirs] = compared.slice(0, 3);
  for (const { peer, name, ...load } of theirs)
    expect({ ...load, peer: null, name: 'message-50' }).toEqual(ours);
});

test('the product is set in relation to each peer that was measured', () => {
  const text = comparisonText([
    measured('message-50', 3, 50),
    measured('message-50/bullmq', 2, 40),
    measured('flood/bullmq', 1, 1),
  ]);
  expect(text).toMatch(/^message-50 \/ bullmq +1\.50 +1\.50 +1\.50 +1\.25$/m);
  expect(text).not.toContain('flood');
  expect(comparisonText([measured('message-50', 3, 50)])).toBe('');
});
