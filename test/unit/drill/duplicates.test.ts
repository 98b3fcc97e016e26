import { describe, expect, test } from 'vitest';
import { disturbancesOf, findDuplicates } from '../../drill/duplicates.ts';
import type { NemesisEvent } from '../../drill/nemesis.ts';
import type { LoggedArrival } from '../../drill/receivers.ts';

const TIMEOUT_MS = 1_000;

function arrival(atMs: number, more: Partial<LoggedArrival> = {}): LoggedArrival {
  return {
    n: atMs,
    endpoint: 0,
    webhookId: 'evt_1',
    deliveryId: '1',
    sequence: 1,
    attempt: 1,
    bodyHash: '',
    content: null,
    answer: 'ok',
    arrivedTick: atMs,
    arrivedMs: atMs,
    answeredTick: atMs + 1,
    answeredMs: atMs + 1,
    accepted: true,
    ...more,
  };
}

function deed(more: Partial<NemesisEvent>): NemesisEvent {
  return { n: 1, atMs: 1_000, target: 'worker-1', deed: 'kill', pid: 7, awayMs: 500, ...more };
}

function reasons(arrivals: LoggedArrival[], events: NemesisEvent[] = []): string[] {
  return findDuplicates(arrivals, disturbancesOf(events), TIMEOUT_MS).map(({ reason }) => reason);
}

describe('the duplicates of a drill', () => {
  test('a retry of what was refused or answered only in part is none', () => {
    const cut = arrival(10, { answer: 'close-early', accepted: false });
    expect(reasons([cut, arrival(20)])).toEqual([]);
  });

  test('the same webhook at another endpoint is none', () => {
    expect(reasons([arrival(10), arrival(20, { endpoint: 1 })])).toEqual([]);
  });

  test('each is put down to what went on when the first was answered', () => {
    const twice = [arrival(1_000), arrival(6_000)];
    expect(reasons(twice, [deed({})])).toEqual(['worker killed']);
    expect(reasons(twice, [deed({ deed: 'pause' })])).toEqual(['worker paused']);
    expect(reasons(twice, [deed({ target: 'postgres', deed: 'kill-tree' })])).toEqual(['postgres killed']);
    expect(reasons(twice, [deed({ target: 'temporal', deed: 'pause' })])).toEqual(['temporal away']);
  });

  test('one that nothing explains is called unexplained', () => {
    expect(reasons([arrival(1_000), arrival(6_000)])).toEqual(['unexplained']);
    expect(reasons([arrival(1_000), arrival(6_000)], [deed({ atMs: 20_000 })])).toEqual(['unexplained']);
    expect(reasons([arrival(100_000), arrival(106_000)], [deed({})])).toEqual(['unexplained']);
  });

  test('an answer at the very end of the time-out may not have counted', () => {
    expect(reasons([arrival(1_000, { answeredMs: 1_950 }), arrival(3_000)])).toEqual([
      'answer near the time-out',
    ]);
  });
});
