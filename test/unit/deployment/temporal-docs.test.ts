import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { WITHOUT_TEMPORAL } from '../../../src/worker/health.ts';
import { repositoryFile } from './compose-file.ts';

const oneLine = (path: string) => repositoryFile(path).replace(/\s+/g, ' ');

test('the rule of Prometheus, its test and the documents say of Temporal that is away what the health of a worker says', () => {
  const { groups } = parse(repositoryFile('charts/heliograph/files/alert-rules.yaml')) as {
    groups: { rules: { alert: string; annotations: { summary: string } }[] }[];
  };
  const rule = groups.flatMap(({ rules }) => rules).find(({ alert }) => alert === 'HeliographTemporalDown');
  expect(rule?.annotations.summary).toBe(`No worker gets an answer from Temporal: ${WITHOUT_TEMPORAL}`);
  for (const path of [
    'deploy/monitoring/rules.test.yml',
    'docs/operators/runbooks.md',
    'docs/operators/monitoring.md',
  ])
    expect(oneLine(path), path).toContain(WITHOUT_TEMPORAL);
});

test.each([
  'README.md',
  'docs/architecture.md',
  'docs/operators/runbooks.md',
  'docs/operators/monitoring.md',
])('%s does not say that retries or orders need Temporal', (path) => {
  expect(oneLine(path)).not.toMatch(
    /Temporal: retries|Temporal drives (its|their|the) retries|\bretries(, | of )[^.|]*\bwait/,
  );
});
