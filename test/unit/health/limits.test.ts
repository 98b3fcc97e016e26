import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { healthOf, PROCESS_LIMITS, QUESTIONS, type Question } from '../../../src/ops/health/limits.ts';
import { LOOPS } from '../../../src/platform/loops.ts';
import { WORKER_LIVES_MS } from '../../../src/platform/postgres/worker-processes.ts';

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const ASKED: readonly Question[] = Object.values(QUESTIONS);
const { groups } = parse(read('charts/heliograph/files/alert-rules.yaml')) as {
  groups: { rules: { alert: string; expr: string }[] }[];
};
const RULES = groups.flatMap(({ rules }) => rules);

/** What figure a rule compares with what number; "4 * 3600" is one. */
function comparisons(): { name: string; metric: string; limit: number }[] {
  return RULES.flatMap(({ alert, expr }) =>
    expr
      .split(' or ')
      .map((part) => /^(.*?)\s*>\s*([\d.]+)(?:\s*\*\s*([\d.]+))?$/.exec(part.trim()))
      .filter((found) => found !== null)
      .map(([, left = '', limit, factor = '1']) => ({
        name: alert,
        metric: /heliograph_\w+/.exec(left)?.[0] ?? left,
        limit: Number(limit) * Number(factor),
      })),
  );
}

const byMetric = (a: { metric: string }, b: { metric: string }) => a.metric.localeCompare(b.metric);

/** Rates of counters that only Prometheus keeps: no process can ask for them. */
const OF_PROMETHEUS = ['HeliographUpstreamRefused', 'HeliographDeliveriesFailedForGood'];

test('every limit of a rule of Prometheus is that of the list, and every question of the list with a rule has it', () => {
  const listed = ASKED.flatMap(({ rule, degraded }) =>
    rule === undefined ? [] : [{ name: rule.name, metric: rule.metric, limit: rule.firesAbove ?? degraded }],
  );
  const found = comparisons().filter(({ name }) => !OF_PROMETHEUS.includes(name));
  expect(found.toSorted(byMetric)).toEqual(listed.toSorted(byMetric));
});

const shown = (limit: number, unit: string) => {
  if (limit === Number.POSITIVE_INFINITY) return '–';
  if (unit === 'Seconds' && limit >= 3_600) return `${limit / 3_600} h`;
  if (unit === 'Seconds') return limit === 0 ? '0' : `${limit / 60} min`;
  if (unit === 'Share') return `${100 * limit} %`;
  return String(limit);
};

test('docs/operators/monitoring.md has the table of limits', () => {
  const rows = Object.entries(QUESTIONS as Record<string, Question>).map(
    ([id, { question, degraded, down, rule }]) => {
      const [unit = ''] = /Seconds$|Share$|$/.exec(id) ?? [];
      const fires =
        rule === undefined ? '–' : `\`${rule.name}\`, above ${shown(rule.firesAbove ?? degraded, unit)}`;
      return `| ${question} | ${shown(degraded, unit)} | ${shown(down, unit)} | ${fires} |`;
    },
  );
  expect(read('docs/operators/monitoring.md')).toContain(
    ['| question | degraded above | down above | rule |', '|---|---|---|---|', ...rows, ''].join('\n'),
  );
});

test('docs/operators/monitoring.md has the limits of a worker process', () => {
  const text = read('docs/operators/monitoring.md');
  const { turnMs, listenerDownMs, unpolledMs, restartMs } = PROCESS_LIMITS;
  const minutes = (ms: number) => ms / 60_000;
  expect(unpolledMs).toBe(60_000);
  for (const sentence of [
    `has taken over ${minutes(turnMs)} minutes (housekeeping: ${minutes(LOOPS.housekeeping.turnLimitMs) / 60} hours)`,
    `listened for notifications for ${listenerDownMs / 1_000} s`,
    'no poller of this process for a minute',
    `in that state for ${minutes(restartMs)} minutes more`,
    `without a heartbeat for ${WORKER_LIVES_MS / 1_000} s`,
  ])
    expect(text).toContain(sentence);
});

describe('an answer', () => {
  test.each([
    [60, 'up'],
    [61, 'degraded'],
    [300, 'degraded'],
    [301, 'down'],
  ] as const)('that the oldest body has waited for %i s means %s', (seconds, health) => {
    expect(healthOf('intakeSeconds', seconds)).toBe(health);
  });

  test('of no traffic at all means up: a share of nothing is no number', () => {
    expect(healthOf('failedShare', Number.NaN)).toBe('up');
  });
});
