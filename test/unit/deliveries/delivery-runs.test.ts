import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { AttemptOutcome } from '../../../src/engine/deliveries/judge-outcome.ts';
import { DeliveryRuns, type RunClient } from '../../../src/engine/deliveries/loop/delivery-runs.ts';
import type { WorkflowMode } from '../../../src/engine/endpoint/workflow-mode.ts';

const DELIVERED: AttemptOutcome = { state: 'delivered', statusCode: 200, attempt: 1 };
const failing = (run: 'room' | 'extra' | null): AttemptOutcome => ({
  state: 'retrying',
  reason: 'the endpoint returned 500',
  attempt: 1,
  delayMs: 60_000,
  isExtra: false,
  run,
});

function label(n = 1) {
  return {
    deliveryId: `00000000-0000-7000-8000-00000000000${n}`,
    deliveryDay: '2026-11-22',
    endpointId: '7',
    endpointUrl: 'https://receiver.example',
    wabaId: '1',
    tenantId: '3',
    eventType: 'message',
    eventId: `wamid.${n}`,
  };
}

/** `lost`: there is no run where the queue has one. */
type Answer = 'new' | 'open' | 'away' | 'silent' | 'lost';

/** Notes each call to Temporal, which answers a start in this way. */
function runsWith(answer: Answer = 'new') {
  const calls: string[] = [];
  const troubles: unknown[] = [];
  const load = { isCalm: true, noted: 0 };
  const temporal = { answer };
  const respond = async (call: string): Promise<boolean> => {
    calls.push(call);
    if (temporal.answer === 'away') throw new Error('Temporal is away');
    if (temporal.answer === 'silent') return await new Promise(() => undefined);
    return temporal.answer === 'new' || temporal.answer === 'lost';
  };
  const client: RunClient = {
    start: async ({ eventId }, { news, held }) =>
      await respond(`start ${eventId} ${held ? 'held' : (news?.end ?? (news === null ? 'slow' : 'waits'))}`),
    end: async (_workflowId, { end }) => (await respond(`end ${end}`)) && temporal.answer !== 'lost',
    wait: async ({ eventId }) => void (await respond(`wait ${eventId}`)),
    cancel: async () => void (await respond('cancel')),
  };
  const calm = {
    note: () => {
      load.noted += 1;
    },
    isCalm: () => load.isCalm,
    shareWith: () => undefined,
  };
  const runs = new DeliveryRuns({
    calm,
    onShown: ({ eventId }) => calls.push(`noted ${eventId}`),
    onTrouble: (error) => troubles.push(error),
  });
  runs.connect(client);
  const begin = (n: number, how: { mode?: WorkflowMode; isFirst?: boolean; hasRun?: boolean } = {}) =>
    runs.begin(label(n), { mode: 'auto', isFirst: true, hasRun: false, ...how });
  return { runs, calls, troubles, load, temporal, begin };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('in calm traffic', () => {
  test('a first attempt that is over soon gets one run that says so', async () => {
    const { runs, calls, begin } = runsWith();
    await runs.end(begin(1), label(1), DELIVERED);
    expect(calls).toEqual(['start wamid.1 delivered', 'noted wamid.1']);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(calls).toHaveLength(2);
  });

  test('one that takes longer than 250 ms gets it while it is under way, and its end is reported', async () => {
    const { runs, calls, begin } = runsWith();
    const run = begin(1);
    await vi.advanceTimersByTimeAsync(249);
    expect(calls).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(calls).toEqual(['start wamid.1 slow', 'noted wamid.1']);
    await runs.end(run, label(1), DELIVERED);
    expect(calls.at(-2)).toBe('end delivered');
  });

  test('one that its run has come for is answered, not reported', async () => {
    const { runs, calls, begin } = runsWith();
    const run = begin(1);
    await vi.advanceTimersByTimeAsync(250);
    const joined = runs.join(label(1).deliveryId);
    await runs.end(run, label(1), DELIVERED);
    expect(await joined).toEqual(DELIVERED);
    expect(calls).toHaveLength(2);
    expect(runs.join(label(1).deliveryId)).toBeNull();
  });

  test('ends with a burst: what began before it gets no run when it is over', async () => {
    const { runs, calls, begin, load } = runsWith();
    const run = begin(1);
    load.isCalm = false;
    expect(begin(2)).toBeNull();
    await runs.end(run, label(1), DELIVERED);
    expect(calls).toEqual([]);
    expect(load.noted).toBe(2);
  });
});

describe('a failed attempt', () => {
  test('gets a run if it was given room for one', async () => {
    const { runs, calls } = runsWith();
    await runs.end(null, label(1), failing('room'));
    await runs.end(null, label(2), failing(null));
    expect(calls).toEqual(['start wamid.1 waits', 'noted wamid.1']);
  });

  test('that a loop made for a delivery with a run is reported to it', async () => {
    const { runs, calls, begin } = runsWith();
    await runs.end(begin(1, { isFirst: false, hasRun: true }), label(1), failing('room'));
    expect(calls).toEqual(['wait wamid.1', 'noted wamid.1']);
  });

  test('with a run by the queue names it only once Temporal has said that it is there', async () => {
    const { runs, calls, begin, temporal } = runsWith('away');
    const run = begin(1, { isFirst: false, hasRun: true });
    expect([run?.hasRun, run?.isShown]).toEqual([true, false]);
    await runs.end(run, label(1), failing('room'));
    expect(calls).toEqual(['wait wamid.1']);
    temporal.answer = 'new';
    await vi.advanceTimersByTimeAsync(1_001);
    const next = begin(1, { isFirst: false, hasRun: true });
    void runs.join(label(1).deliveryId);
    expect(next?.isShown).toBe(true);
  });

  test('whose run is lost gets another that says how it ended', async () => {
    const { runs, calls, begin } = runsWith('lost');
    await runs.end(begin(1, { isFirst: false, hasRun: true }), label(1), DELIVERED);
    expect(calls).toEqual(['end delivered', 'start wamid.1 delivered', 'noted wamid.1']);
  });

  test('whose run is open already, unknown to the queue, is reported to it', async () => {
    const { runs, calls } = runsWith('open');
    await runs.end(null, label(1), failing('room'));
    expect(calls).toEqual(['start wamid.1 waits', 'wait wamid.1', 'noted wamid.1']);
  });
});

describe('always', () => {
  test('an attempt waits for its run, and ends inside it', async () => {
    const { runs, calls, begin } = runsWith();
    const run = begin(1, { mode: 'always' });
    expect(run?.isHeld).toBe(true);
    let isSent = false;
    const sent = run?.held(15_000).then(() => {
      isSent = true;
    });
    await vi.advanceTimersByTimeAsync(100);
    expect([calls, isSent]).toEqual([['start wamid.1 held', 'noted wamid.1'], false]);
    const joined = runs.join(label(1).deliveryId);
    await sent;
    await runs.end(run, label(1), DELIVERED);
    expect(await joined).toEqual(DELIVERED);
  });

  test.each<[string, Answer, number]>([
    ['is not there', 'away', 0],
    ['does not answer', 'silent', 2_000],
    ['starts a run that never comes', 'new', 2_000],
    ['has an earlier run that is open', 'open', 0],
  ])('it is made without one where Temporal %s', async (_, answer, waitMs) => {
    const { begin } = runsWith(answer);
    const run = begin(1, { mode: 'always' });
    let isSent = false;
    void run?.held(15_000).then(() => {
      isSent = true;
    });
    await vi.advanceTimersByTimeAsync(waitMs);
    expect(isSent).toBe(true);
  });

  test('a retry waits for nothing where it has a run, and for a new one where Temporal was away before', () => {
    const { begin } = runsWith();
    expect(begin(1, { mode: 'always', isFirst: false, hasRun: true })?.isHeld).toBe(false);
    expect(begin(2, { mode: 'always', isFirst: false })?.isHeld).toBe(true);
  });
});

test('counts which attempts a run shows: before, while or after they were made', async () => {
  const { runs, load, temporal, begin } = runsWith();
  await runs.end(begin(1), label(1), DELIVERED);
  await runs.end(begin(2, { mode: 'always' }), label(2), DELIVERED);
  await runs.end(null, label(3), failing('room'));
  await runs.end(begin(4, { isFirst: false, hasRun: true }), label(4), failing('extra'));
  expect(runs.share.total()).toEqual({ attempts: 4, withRun: 4 });
  await runs.end(null, label(5), DELIVERED);
  await runs.end(null, label(6), failing(null));
  load.isCalm = false;
  await runs.end(begin(7), label(7), DELIVERED);
  temporal.answer = 'away';
  await runs.end(null, label(8), failing('room'));
  await runs.end(null, label(9), null);
  expect(runs.share.total()).toEqual({ attempts: 8, withRun: 4 });
});

describe('Temporal away', () => {
  test('is reported once, others pause for a second, and the first call that succeeds ends it', async () => {
    const { runs, calls, troubles, temporal } = runsWith('away');
    await runs.end(null, label(1), failing('room'));
    await runs.end(null, label(2), failing('room'));
    expect([runs.isUp(), runs.mayStart(), troubles.length, calls.length]).toEqual([false, false, 1, 1]);
    await vi.advanceTimersByTimeAsync(1_001);
    await runs.end(null, label(2), failing('room'));
    expect([runs.isUp(), troubles.length, calls.length]).toEqual([false, 1, 2]);
    temporal.answer = 'new';
    await vi.advanceTimersByTimeAsync(1_001);
    await runs.end(null, label(2), failing('room'));
    expect(runs.isUp()).toBe(true);
  });

  test('from the start: nothing gets a run, and nothing waits for one', () => {
    const calm = { note: () => undefined, isCalm: () => true, shareWith: () => undefined };
    const runs = new DeliveryRuns({ calm, onShown: () => undefined, onTrouble: () => undefined });
    expect(runs.isUp()).toBe(false);
    for (const mode of ['auto', 'always'] as const)
      expect(runs.begin(label(), { mode, isFirst: true, hasRun: false })).toBeNull();
  });

  test('an attempt that was not recorded sends its run to look again', async () => {
    const { runs, begin } = runsWith();
    const run = begin(1, { hasRun: true });
    const joined = runs.join(label(1).deliveryId);
    await runs.end(run, label(1), null);
    expect(await joined).toMatchObject({ state: 'waiting' });
  });
});
