import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { AttemptOutcome } from '../../../src/deliveries/attempt/attempt-outcome.ts';
import {
  type DeliveryWorkflows,
  makeDeliveryWorkflows,
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

function workflowsWith(
  start: StartWorkflow,
  { mode = 'auto', starts = 100 }: { mode?: WorkflowMode; starts?: number } = {},
) {
  const troubles: unknown[] = [];
  let left = starts;
  const allowance = { take: () => left-- > 0, shareWith: () => undefined };
  const workflows = makeDeliveryWorkflows({ mode, allowance, onTrouble: (error) => troubles.push(error) });
  workflows.connect(start);
  const carry = (n = 1, isFirst = true) => workflows.carry(label(n), `delivery/delivery-${n}`, isFirst);
  return { workflows, troubles, carry };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('which deliveries get a workflow', () => {
  test('auto: first attempts, as far as the allowance goes', () => {
    const { carry } = workflowsWith(started, { starts: 2 });
    expect([carry(1), carry(2, false), carry(3), carry(4)].map((attempt) => attempt !== null)).toEqual([
      ...[true, false, true, false],
    ]);
  });

  test('always: all of them; failures: none', () => {
    const always = workflowsWith(started, { mode: 'always', starts: 0 });
    expect([always.carry(1), always.carry(2, false)].every((attempt) => attempt !== null)).toBe(true);
    expect(workflowsWith(started, { mode: 'failures' }).carry()).toBeNull();
  });

  test('none before Temporal answers: always waits for it, the others go on', () => {
    for (const mode of ['auto', 'always', 'failures'] as const) {
      const allowance = { take: () => true, shareWith: () => undefined };
      const workflows = makeDeliveryWorkflows({ mode, allowance, onTrouble: () => undefined });
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
    expect(attempt?.hasFailed()).toBe(false);
  });
});

describe('a workflow that cannot be started', () => {
  test.each([
    ['is refused', away, 0],
    ['has no answer within three seconds', silent, 3_001],
  ])(
    'carries nothing: the start %s; others pause for a second, and it is told once',
    async (_, start, waitMs) => {
      const { workflows, carry, troubles } = workflowsWith(start);
      const attempts = [carry(1), carry(2)];
      await vi.advanceTimersByTimeAsync(waitMs);
      for (const attempt of attempts) {
        expect(await attempt?.started).toBe(false);
        expect(await attempt?.joined).toBe(false);
        expect(attempt?.hasFailed()).toBe(true);
      }
      expect(workflows.join('delivery-1')).toBeNull();
      expect(troubles).toHaveLength(1);
      expect(carry(3)).toBeNull();
      await vi.advanceTimersByTimeAsync(1_001);
      expect(carry(4)).not.toBeNull();
    },
  );

  test('leaves its retry to the loop', async () => {
    const { workflows } = workflowsWith(away);
    const { started: begun, failed } = await workflows.startAll([label(1), label(2)]);
    expect([begun, failed.map(({ deliveryId }) => deliveryId)]).toEqual([[], ['delivery-1', 'delivery-2']]);
  });
});

test('an earlier run that is open carries an attempt only once it has joined', async () => {
  const { workflows, carry, troubles } = workflowsWith(async () => ({ workflowId: 'w', isNew: false }));
  const attempt = carry();
  await vi.advanceTimersByTimeAsync(1);
  expect(attempt?.hasFailed()).toBe(true);
  void workflows.join('delivery-1');
  expect(attempt?.hasFailed()).toBe(false);
  expect(troubles).toEqual([]);
});
