import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { AttemptOutcome } from '../../../src/deliveries/judge-outcome.ts';
import {
  DeliveryWorkflows,
  makeCalmWatch,
  makeRetryAllowance,
  type WorkflowMode,
} from '../../../src/deliveries/loop/delivery-workflows.ts';

type StartWorkflow = Parameters<DeliveryWorkflows['connect']>[0];

const DELIVERED: AttemptOutcome = { state: 'delivered', statusCode: 200, attempt: 1 };

function label(n = 1) {
  return {
    ...{ deliveryId: `delivery-${n}`, deliveryDay: '2026-11-22', endpointId: '7' },
    ...{ endpointUrl: 'https://receiver.example', wabaId: '1', tenantId: '3' },
    ...{ eventType: 'message', eventId: `wamid.${n}` },
  };
}

const started: StartWorkflow = async ({ deliveryId }) => ({
  workflowId: `delivery/${deliveryId}`,
  isNew: true,
});
const away: StartWorkflow = async () => {
  throw new Error('Temporal is away');
};
const silent: StartWorkflow = () => new Promise(() => undefined);

function workflowsWith(start: StartWorkflow, { mode = 'auto' }: { mode?: WorkflowMode } = {}) {
  const troubles: unknown[] = [];
  const headStarts: string[] = [];
  const load = { isCalm: true, noted: 0 };
  const calm = {
    note: () => {
      load.noted += 1;
    },
    isCalm: () => load.isCalm,
    shareWith: () => undefined,
  };
  const workflows = new DeliveryWorkflows({
    mode,
    calm,
    onHeadStart: ({ workflowId }) => headStarts.push(workflowId),
    onTrouble: (error) => troubles.push(error),
  });
  workflows.connect(start);
  const carry = (n = 1, isFirst = true) => workflows.carry(label(n), `delivery/delivery-${n}`, isFirst);
  return { workflows, troubles, headStarts, load, carry };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('which deliveries get a workflow', () => {
  test('auto: first attempts, a moment later, if it is calm then and they did not fail', async () => {
    const { carry, load, headStarts } = workflowsWith(started);
    const [delivered, underWay, failed] = [carry(1), carry(2), carry(3)];
    delivered?.end(DELIVERED);
    failed?.end({ state: 'deferred', reason: 'gone', attempt: 1 });
    expect(carry(4, false)).toBeNull();
    await vi.advanceTimersByTimeAsync(249);
    expect([delivered, underWay].map((attempt) => attempt?.hasWorkflow())).toEqual([false, false]);
    await vi.advanceTimersByTimeAsync(1);
    expect([delivered, underWay, failed].map((attempt) => attempt?.hasWorkflow())).toEqual([
      true,
      true,
      false,
    ]);
    expect(headStarts).toEqual(['delivery/delivery-1', 'delivery/delivery-2']);
    const late = carry(5);
    load.isCalm = false;
    await vi.advanceTimersByTimeAsync(250);
    expect(late?.hasWorkflow()).toBe(false);
    expect(carry(6)).toBeNull();
    expect(load.noted).toBe(5);
  });

  test('always: all of them; failures: none', () => {
    const always = workflowsWith(started, { mode: 'always' });
    expect([always.carry(1), always.carry(2, false)].every((attempt) => attempt !== null)).toBe(true);
    expect(workflowsWith(started, { mode: 'failures' }).carry()).toBeNull();
  });

  test('none before Temporal answers: always waits for it, the others go on', () => {
    for (const mode of ['auto', 'always', 'failures'] as const) {
      const calm = { note: () => undefined, isCalm: () => true, shareWith: () => undefined };
      const ignore = () => undefined;
      const workflows = new DeliveryWorkflows({ mode, calm, onHeadStart: ignore, onTrouble: ignore });
      expect(workflows.isReady()).toBe(mode !== 'always');
      expect(workflows.carry(label(), 'w', true)).toBeNull();
    }
  });
});

describe('the activity of a workflow', () => {
  test('that comes before the end of the attempt is told of it', async () => {
    const { workflows, carry } = workflowsWith(started);
    const attempt = carry();
    const outcome = workflows.join('delivery-1');
    attempt?.end(DELIVERED);
    expect(await attempt?.joined).toBe(true);
    expect(await outcome).toEqual(DELIVERED);
    expect(workflows.join('delivery-1')).toBeNull();
  });

  test('that comes later is told once; after half a minute it asks the queue', async () => {
    const { workflows, carry } = workflowsWith(started);
    carry(1)?.end(DELIVERED);
    expect(await workflows.join('delivery-1')).toEqual(DELIVERED);
    expect(workflows.join('delivery-1')).toBeNull();
    carry(2)?.end(DELIVERED);
    await vi.advanceTimersByTimeAsync(30_001);
    expect(workflows.join('delivery-2')).toBeNull();
  });

  test('that does not come within five seconds is not waited for', async () => {
    const { carry } = workflowsWith(started, { mode: 'always' });
    const attempt = carry();
    await vi.advanceTimersByTimeAsync(5_001);
    expect(await attempt?.joined).toBe(false);
    expect(attempt?.hasWorkflow()).toBe(true);
  });
});

describe('a workflow that cannot be started', () => {
  test.each([
    ['is refused', away, 0],
    ['has no answer within three seconds', silent, 3_001],
  ])(
    'carries nothing: the start %s; others pause for a second, and it is told once',
    async (_, start, waitMs) => {
      const { workflows, carry, troubles } = workflowsWith(start, { mode: 'always' });
      const attempts = [carry(1), carry(2)];
      await vi.advanceTimersByTimeAsync(waitMs);
      for (const attempt of attempts) {
        expect(await attempt?.started).toBe(false);
        expect(await attempt?.joined).toBe(false);
        expect(attempt?.hasWorkflow()).toBe(false);
      }
      expect(workflows.join('delivery-1')).toBeNull();
      expect(troubles).toHaveLength(1);
      expect(workflows.isReady()).toBe(false);
      await vi.advanceTimersByTimeAsync(1_001);
      expect(workflows.isReady()).toBe(true);
    },
  );

  test('leaves its retry to the loop', async () => {
    const { workflows } = workflowsWith(away);
    const { started: begun, failed } = await workflows.startAll([label(1), label(2)]);
    expect([begun, failed.map(({ deliveryId }) => deliveryId)]).toEqual([[], ['delivery-1', 'delivery-2']]);
  });
});

test('an earlier run that is open carries an attempt only once it has joined', async () => {
  const earlier: StartWorkflow = async () => ({ workflowId: 'w', isNew: false });
  const { workflows, carry, troubles } = workflowsWith(earlier, { mode: 'always' });
  const attempt = carry();
  await vi.advanceTimersByTimeAsync(1);
  expect(attempt?.hasWorkflow()).toBe(false);
  void workflows.join('delivery-1');
  expect(attempt?.hasWorkflow()).toBe(true);
  expect(troubles).toEqual([]);
});

const CORES = 2;
const PER_SECOND = 10;

function allowance() {
  let nowMs = 0;
  const made = makeRetryAllowance(CORES, () => nowMs);
  const takeAll = () => {
    let taken = 0;
    while (made.take()) taken += 1;
    return taken;
  };
  const wait = (ms: number) => {
    nowMs += ms;
  };
  return { ...made, takeAll, wait };
}

test('retry workflows: five per second and core, of which a few can be saved up', () => {
  const { takeAll, wait } = allowance();
  expect(takeAll()).toBe(20);
  wait(99);
  expect(takeAll()).toBe(0);
  wait(1);
  expect(takeAll()).toBe(1);
  wait(3_600_000);
  expect(takeAll()).toBe(20);
});

test('processes share it evenly', () => {
  const { takeAll, wait, shareWith } = allowance();
  takeAll();
  shareWith(4);
  wait(399);
  expect(takeAll()).toBe(0);
  wait(1);
  expect(takeAll()).toBe(1);
  // Before a process knows of any, itself included, it is alone.
  shareWith(0);
  wait(100);
  expect(takeAll()).toBe(1);
});

test('what is saved up is shared too: eight processes start no more at once than one', () => {
  const { takeAll, wait, shareWith } = allowance();
  shareWith(8);
  expect(8 * takeAll()).toBeLessThanOrEqual(20);
  wait(60_000);
  expect(8 * takeAll()).toBeLessThanOrEqual(20);
  // More processes than starts are saved: each may make one.
  shareWith(40);
  wait(60_000);
  expect(takeAll()).toBe(1);
});

test('property: over any time never more than the rate and what was saved, however often it is asked', () => {
  const steps = fc.array(fc.record({ waitMs: fc.nat(500), wanted: fc.nat(20) }), { maxLength: 200 });
  fc.assert(
    fc.property(steps, (plan) => {
      const { take, wait } = allowance();
      let [taken, elapsedMs] = [0, 0];
      for (const { waitMs, wanted } of plan) {
        wait(waitMs);
        elapsedMs += waitMs;
        for (let n = 0; n < wanted; n += 1) if (take()) taken += 1;
        expect(taken).toBeLessThanOrEqual(20 + (elapsedMs / 1_000) * PER_SECOND + 1e-6);
      }
    }),
  );
});

test('calm up to five first attempts per second and core, a few more at once, and not for seconds after a burst', () => {
  let nowMs = 0;
  const { note, isCalm } = makeCalmWatch(CORES, () => nowMs);
  const noteAll = (count: number) => {
    for (let n = 0; n < count; n += 1) note();
    return isCalm();
  };
  expect(noteAll(10)).toBe(true);
  expect(noteAll(1)).toBe(false);
  for (let second = 0; second < 10; second += 1) {
    nowMs += 1_000;
    expect(noteAll(PER_SECOND / 2)).toBe(true);
  }
  expect(noteAll(1_000)).toBe(false);
  nowMs += 1_999;
  expect(isCalm()).toBe(false);
  nowMs += 200;
  expect(isCalm()).toBe(true);
  for (let step = 0; step < 200; step += 1) {
    nowMs += 20;
    note();
  }
  expect(isCalm()).toBe(false);
});

test('with eight processes a burst is as long forgotten as with one, and no more at once is calm', () => {
  let nowMs = 0;
  const { note, isCalm, shareWith } = makeCalmWatch(CORES, () => nowMs);
  shareWith(8);
  let calm = 0;
  for (; isCalm(); calm += 1) note();
  expect(8 * (calm - 1)).toBeLessThanOrEqual(10);
  for (let n = 0; n < 500; n += 1) note();
  nowMs += 1_500;
  expect(isCalm()).toBe(false);
  nowMs += 1_500;
  expect(isCalm()).toBe(true);
});
