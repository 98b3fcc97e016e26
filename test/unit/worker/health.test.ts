import { describe, expect, test } from 'vitest';
import type { LoopName } from '../../../src/platform/loops.ts';
import { judgeHealth, type WorkerParts } from '../../../src/worker/health.ts';

const MINUTE_MS = 60_000;
const loop = (turnMs: number) => ({ turnMs, sinceTurnMs: turnMs, failingMs: 0 });
const only = (name: LoopName, turnMs: number) => new Map([[name, loop(turnMs)]]);

const WELL: WorkerParts = {
  isStopping: false,
  hasStarted: true,
  listenerDownMs: 0,
  hasSchema: true,
  temporalAwayMs: 0,
  loops: new Map([
    ['intake', loop(10)],
    ['housekeeping', loop(0)],
    ['run-upkeep', loop(0)],
  ]),
  deafMs: new Map(),
};

const judged = (changes: Partial<WorkerParts>) => judgeHealth({ ...WELL, ...changes });

describe('the health of a worker', () => {
  test('is ready while all is well', () => {
    const checks = { loops: 'ok', listener: 'ok', schema: 'ok', temporal: 'ok', pollers: 'ok' };
    expect(judged({})).toEqual({ status: 'ready', checks, warnings: [], needsRestart: false });
  });

  test('starts once Temporal was reached, and ends with the process', () => {
    expect(judged({ hasStarted: false, temporalAwayMs: 1 }).status).toBe('starting');
    expect(judged({ isStopping: true }).status).toBe('stopping');
  });

  test('is degraded, not unavailable, while Temporal is away, whatever needs it', () => {
    const needing = [
      'session-workflow',
      'run-upkeep',
      'trouble-watch',
      'workflow-starter',
      'number-schedule',
    ] as const;
    const loops = new Map(needing.map((name) => [name, loop(20 * MINUTE_MS)]));
    const deafMs = new Map([['media', 20 * MINUTE_MS]]);
    const away = judged({ temporalAwayMs: 20 * MINUTE_MS, loops, deafMs });
    expect([away.status, away.needsRestart, away.checks.temporal]).toEqual(['degraded', false, 'failed']);
    expect(away.warnings).toHaveLength(1);
  });

  test.each([
    ['a loop hangs', { loops: only('intake', 4 * MINUTE_MS) }, 'loops', /loop intake/],
    ['no connection listens', { listenerDownMs: MINUTE_MS }, 'listener', /listened for 60 s/],
    ['the schema is older', { hasSchema: false }, 'schema', /heliograph-server migrate/],
    ['a queue is not polled', { deafMs: new Map([['sends', 90_000]]) }, 'pollers', /queue sends for 90 s/],
  ] as const)('is unavailable while %s, and says so', (_what, changes, check, warning) => {
    const health = judged(changes);
    expect([health.status, health.checks[check], health.needsRestart]).toEqual([
      'unavailable',
      'failed',
      false,
    ]);
    expect(health.warnings).toEqual([expect.stringMatching(warning)]);
  });

  test('asks for a restart only where that helps: a loop that hangs, a queue that stays unpolled', () => {
    const hour = 60 * MINUTE_MS;
    expect(judged({ loops: only('intake', 9 * MINUTE_MS) }).needsRestart).toBe(true);
    expect(judged({ deafMs: new Map([['sends', 6 * MINUTE_MS]]) }).needsRestart).toBe(true);
    expect(judged({ listenerDownMs: hour, hasSchema: false }).needsRestart).toBe(false);
    expect(judged({ loops: only('housekeeping', hour) }).status).toBe('ready');
  });

  test('waits for a database that does not answer before it judges its schema', () => {
    expect(judged({ hasSchema: null }).status).toBe('ready');
  });
});
