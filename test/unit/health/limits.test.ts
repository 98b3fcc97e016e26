import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { PROCESS_LIMITS } from '../../../src/ops/health/limits.ts';
import { ALL, healthOf } from '../../../src/ops/health/questions.ts';
import { WABA_QUESTIONS } from '../../../src/ops/health/waba-check.ts';
import { LOOPS } from '../../../src/platform/loops.ts';
import { WORKER_LIVES_MS } from '../../../src/platform/postgres/worker-processes.ts';

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const ASKED = Object.values(ALL).flatMap(({ question, limit }) =>
  limit?.rule === undefined ? [] : [{ question, ...limit, rule: limit.rule }],
);
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
  const listed = ASKED.map(({ rule: [name, metric, firesAbove], degraded }) => ({
    name,
    metric: `heliograph_${metric}`,
    limit: firesAbove ?? degraded,
  }));
  const found = comparisons().filter(({ name }) => !OF_PROMETHEUS.includes(name));
  expect(found.toSorted(byMetric)).toEqual(listed.toSorted(byMetric));
});

const shown = (limit: number, metric: string) => {
  if (limit === Number.POSITIVE_INFINITY) return '–';
  if (/_ratio$|_attempts_total$/.test(metric)) return `${100 * limit} %`;
  if (limit === 0 || !metric.endsWith('_seconds')) return String(limit);
  return limit >= 3_600 ? `${limit / 3_600} h` : `${limit / 60} min`;
};

test('docs/operators/monitoring.md has the table of limits', () => {
  const rows = ASKED.map(
    ({ question, degraded, down = Number.POSITIVE_INFINITY, rule: [name, metric, firesAbove] }) => {
      const fires = `\`${name}\`, above ${shown(firesAbove ?? degraded, metric)}`;
      return `| ${question} | ${shown(degraded, metric)} | ${shown(down, metric)} | ${fires} |`;
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

const askedBy = (who: 'anyone' | 'tenant') =>
  Object.entries(ALL).flatMap(([id, { asker }]) => (asker === who ? [id] : []));

test('anyone may ask only what docs/operators/monitoring.md has for /readyz of an API, a tenant only about its WABA', () => {
  const [, table = ''] = read('docs/operators/monitoring.md').split('| check | `failed` when |\n|---|---|\n');
  const rows = [...(table.split('\n\n')[0] ?? '').matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
  // A worker in the same process says whether it has reached Temporal.
  expect([...askedBy('anyone'), 'temporal'].toSorted()).toEqual(rows.toSorted());
  expect(askedBy('tenant')).toEqual(Object.keys(WABA_QUESTIONS));
});

describe('an answer', () => {
  test.each([
    [50, 'up'],
    [61, 'degraded'],
    [290, 'degraded'],
    [301, 'down'],
  ] as const)('that the oldest body has waited for %i s means %s', (seconds, health) => {
    const at = new Date(Date.now() - 1_000 * seconds);
    expect(healthOf('oldestBody', at)).toBe(health);
  });

  test('of no traffic at all means up: a share of nothing is no number', () => {
    expect(healthOf('traffic', { delivered: 0, failed: 0 })).toBe('up');
    expect(healthOf('traffic', { delivered: 1, failed: 2 })).toBe('degraded');
  });
});
