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
  const [, , ...latencies] = benchmarkRow('200 per second');
  const [one, two] = latencies.map((cell) => cell.split(' / '));
  expect(readme).toContain(
    `at 200 events per second: p50 ${one?.[0]} ms, p95 ${one?.[1]} ms in one process;`,
  );
  expect(readme).toContain(`p50 ${two?.[0]} ms, p95 ${two?.[1]} ms in two, as Compose runs it`);
  const [, , , , throughput = ''] = benchmarkRow('flood');
  const [perSecond] = throughput.split(', ');
  expect(perSecond).toMatch(/^[\d,]+$/);
  expect(readme).toContain(`One process delivers a flood at ${perSecond} events per second`);
});

test('README states no speed that the benchmark does not', () => {
  const [, figures = ''] = repositoryFile('docs/contributors/benchmark.md').split('## Figures');
  const stated = repositoryFile('README.md')
    .replace(/\s+/g, ' ')
    .matchAll(/([\d.,]*\d) (?:ms|events per second)\b/g);
  const numbers = [...stated].map(([, number = '']) => number);
  expect(numbers.length).toBeGreaterThan(2);
  expect(numbers.filter((number) => !figures.includes(number))).toEqual([]);
});

test('README states the drill that its result records', () => {
  const { counts } = JSON.parse(repositoryFile('docs/contributors/drill/result-seed-4.json'));
  expect(counts).toMatchObject({ lost: 0, orderViolations: 0 });
  const events = counts.eventsAcknowledged.toLocaleString('en-US');
  const readme = repositoryFile('README.md').replace(/\s+/g, ' ');
  expect(readme).toContain(`with ${counts.kills} \`kill -9\` lost none of ${events} events`);
  expect(readme).toContain(`of ${counts.kills} kills without loss`);
});
