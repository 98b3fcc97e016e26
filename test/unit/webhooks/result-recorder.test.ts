import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../../src/database/database.ts';
import { makeEndpointHealth } from '../../../src/webhooks/endpoint-health.ts';
import { makeResultRecorder } from '../../../src/webhooks/session/result-recorder.ts';
import { madeAttempt } from './made-attempts.ts';
import { response } from './send-results.ts';

const STATEMENT_MS = 10;
const GROUPS = 6;

/** Records a new result each millisecond; returns the shortest time between two statements. */
async function shortestGapMs({ promoted }: { promoted: number }): Promise<number> {
  const started: number[] = [];
  const ended: number[] = [];
  const raw = async () => {
    started.push(performance.now());
    await sleep(STATEMENT_MS);
    ended.push(performance.now());
    return { rows: [{ settled: 'delivery-0', promoted, deliveryId: null }], rowCount: 1 };
  };
  const recorder = makeResultRecorder(
    {
      database: { raw } as unknown as Database,
      health: makeEndpointHealth(),
      retryLimits: { perEndpoint: 20, overall: 200 },
      worker: 'test',
      onAttempt: () => undefined,
    },
    {
      giveUpMs: 1_000,
      followerClaims: () => null,
      onRecorded: () => undefined,
      onOrphans: () => undefined,
      onUnrecordable: (error) => {
        throw error;
      },
    },
  );
  for (let n = 0; ended.length < GROUPS; n += 1) {
    recorder.add(madeAttempt(response(200), n));
    await sleep(1);
  }
  return Math.min(...started.slice(1).map((ms, index) => ms - (ended[index] ?? 0)));
}

describe('results are recorded in groups', () => {
  test('with a rest after each, so that groups grow with the load', async () => {
    expect(await shortestGapMs({ promoted: 0 })).toBeGreaterThan(1.5 * STATEMENT_MS);
  });

  test('without a rest where the next of a lane waits for the record', async () => {
    expect(await shortestGapMs({ promoted: 1 })).toBeLessThan(STATEMENT_MS);
  });
});
