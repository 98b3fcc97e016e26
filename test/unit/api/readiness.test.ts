import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createReadiness } from '../../../src/api/health/health-routes.ts';

const never = () => new Promise<never>(() => undefined);
const base = { isDraining: () => false, warnings: () => [], now: () => performance.now() };

test('a part that is silent and not needed does not use up the second that probes wait', async () => {
  const checks = { database: async () => undefined };
  const readiness = createReadiness({ ...base, checks, optionalChecks: { objectStore: never } });
  // The timers of a process come in their order, however late all of them are.
  expect(await Promise.race([readiness(), sleep(900, 'late')])).toEqual({
    status: 'ready',
    checks: { database: 'ok', objectStore: 'failed' },
  });
});

test('without a part that is needed it is not ready, whatever else is well', async () => {
  const failing = { database: () => Promise.reject(new Error('away')) };
  const readiness = createReadiness({
    ...base,
    checks: failing,
    optionalChecks: { objectStore: async () => undefined },
  });
  expect(await readiness()).toMatchObject({ status: 'unavailable', checks: { objectStore: 'ok' } });
});
