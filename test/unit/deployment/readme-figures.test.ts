import { expect, test } from 'vitest';
import { repositoryFile } from './compose-file.ts';

/** The cells of a row of the table of figures in docs/contributors/benchmark.md, by the beginning of its first cell. */
function benchmarkRow(scenario: string): string[] {
  const [, figures = ''] = repositoryFile('docs/contributors/benchmark.md').split('## Figures');
  const row = figures.split('\n').find((line) => line.startsWith(`| ${scenario}`));
  if (row === undefined) throw new Error(`docs/contributors/benchmark.md has no figures of ${scenario}`);
  return row.split('|').map((cell) => cell.trim());
}

test('README states the speed that the benchmark measured', () => {
  const readme = repositoryFile('README.md').replace(/\s+/g, ' ');
  const [, , latencies = ''] = benchmarkRow('200 per second');
  const [p50, p95] = latencies.split(' / ');
  expect(readme).toContain(`At 200 events per second, half of the webhooks arrive within ${p50} ms`);
  expect(readme).toContain(`95 % within ${p95} ms`);
  const [, , , , throughput = ''] = benchmarkRow('flood');
  const [perSecond] = throughput.split(', ');
  expect(perSecond).toMatch(/^[\d,]+$/);
  expect(readme).toContain(`A flood is delivered at ${perSecond} events per second`);
});
