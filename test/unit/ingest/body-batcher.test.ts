import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  BodyBatcher,
  type BodyBatcherOptions,
  BodyNotStoredError,
} from '../../../src/api/inbound/body-batcher.ts';

class TransientError extends Error {}
class AwayError extends Error {}

const LIMITS = {
  isTransient: (error: unknown) => error instanceof TransientError || error instanceof AwayError,
  isAway: (error: unknown) => error instanceof AwayError,
  onPoison: () => {},
  maxBatchBodies: 500,
  maxBatchBytes: 4_000_000,
  maxWaitingBytes: 64_000_000,
  commitTimeoutMs: 4_000,
  abandonAfterMs: 35_000,
};

type Options = Partial<Omit<BodyBatcherOptions, 'store'>> & { store: (bodies: Buffer[]) => Promise<void> };

function batcher({ store, ...options }: Options) {
  const bodies = new BodyBatcher({
    ...LIMITS,
    ...options,
    store: (signed) => store(signed.map(({ body }) => body)),
  });
  return { add: (body: Buffer) => bodies.add({ body, signedFor: null }), drained: () => bodies.drained() };
}

const body = (text: string) => Buffer.from(text);
const outcomes = async (adds: Promise<void>[]) =>
  (await Promise.allSettled(adds)).map(({ status }) => status === 'fulfilled');

afterEach(() => {
  vi.useRealTimers();
});

describe('group commit', () => {
  test('a lone body is stored at once, and what comes meanwhile goes together in the next statement', async () => {
    const batches: string[][] = [];
    const { add, drained } = batcher({
      store: async (bodies) => {
        batches.push(bodies.map(String));
        await new Promise((resolve) => setTimeout(resolve, 10));
      },
    });
    const first = add(body('1'));
    await new Promise((resolve) => setTimeout(resolve, 2));
    const later = ['2', '3', '4'].map((text) => add(body(text)));
    await Promise.all([first, ...later]);
    await drained();
    expect(batches).toEqual([['1'], ['2', '3', '4']]);
  });

  test('a batch keeps to its limits of bodies and bytes, and a body beyond them goes alone', async () => {
    const batches: number[][] = [];
    const { add } = batcher({
      store: async (bodies) => {
        batches.push(bodies.map((one) => one.length));
      },
      maxBatchBodies: 3,
      maxBatchBytes: 100,
    });
    await Promise.all([40, 40, 40, 500, 1, 1, 1, 1].map((size) => add(Buffer.alloc(size))));
    expect(batches).toEqual([[40, 40], [40], [500], [1, 1, 1], [1]]);
  });

  test('an empty body is stored like any other', async () => {
    const stored: number[] = [];
    const { add } = batcher({
      store: async (bodies) => {
        stored.push(...bodies.map((one) => one.length));
      },
    });
    await add(Buffer.alloc(0));
    expect(stored).toEqual([0]);
  });
});

describe('what is acknowledged is stored', () => {
  const batchFate = fc.constantFrom('ok', 'ok', 'transient');
  const arrival = fc.record({
    isPoison: fc.boolean(),
    waitMs: fc.nat({ max: 3 }),
    sizeBytes: fc.nat({ max: 60 }),
  });

  test('for any failures, exactly the acknowledged bodies are stored, once each, in the order of arrival, one statement at a time', async () => {
    const property = fc.asyncProperty(
      fc.array(arrival, { minLength: 1, maxLength: 30 }),
      fc.infiniteStream(batchFate),
      fc.integer({ min: 1, max: 8 }),
      async (arrivals, fates, maxBatchBodies) => {
        const stored: number[] = [];
        let running = 0;
        const poison = new Set(arrivals.flatMap(({ isPoison }, index) => (isPoison ? [index] : [])));
        const { add, drained } = batcher({
          maxBatchBodies,
          maxBatchBytes: 100,
          store: async (bodies) => {
            expect(++running).toBe(1);
            await new Promise((resolve) => setImmediate(resolve));
            running -= 1;
            if (fates.next().value === 'transient') throw new TransientError();
            const ids = bodies.map((one) => one.readUInt16BE(0));
            if (ids.some((id) => poison.has(id))) throw new Error('invalid');
            stored.push(...ids);
          },
        });
        const adds: Promise<boolean>[] = [];
        for (const [index, { waitMs, sizeBytes }] of arrivals.entries()) {
          for (let turn = 0; turn < waitMs; turn += 1) await new Promise((resolve) => setImmediate(resolve));
          const bytes = Buffer.alloc(2 + sizeBytes);
          bytes.writeUInt16BE(index);
          adds.push(
            add(bytes).then(
              () => true,
              () => false,
            ),
          );
        }
        const acknowledged = (await Promise.all(adds)).flatMap((isStored, index) =>
          isStored ? [index] : [],
        );
        await drained();
        expect(stored).toEqual(acknowledged);
      },
    );
    await fc.assert(property, { numRuns: 300 });
  });

  test('one poison body never fails the others of its batch, and somebody is told of it', async () => {
    const onPoison = vi.fn();
    const { add } = batcher({
      onPoison,
      store: async (bodies) => {
        if (bodies.some((one) => String(one) === 'poison')) throw new Error('invalid');
      },
    });
    expect(await outcomes(['a', 'poison', 'b'].map((text) => add(body(text))))).toEqual([true, false, true]);
    expect(onPoison).toHaveBeenCalledTimes(1);
    expect(onPoison).toHaveBeenCalledWith(expect.any(Error), 6);
  });

  test('a failure that does not pass by itself fails its batch without a second try, and nobody is told of poison', async () => {
    const onPoison = vi.fn();
    const store = vi.fn(async () => {
      throw new TransientError();
    });
    const { add } = batcher({ store, onPoison });
    expect(await outcomes([add(body('a')), add(body('b'))])).toEqual([false, false]);
    expect(store).toHaveBeenCalledTimes(1);
    expect(onPoison).not.toHaveBeenCalled();
  });
});

const reasonOf = (add: Promise<void>) =>
  add.then(
    () => 'stored',
    (error: unknown) => (error instanceof BodyNotStoredError ? error.reason : 'other'),
  );

describe('a database that is away', () => {
  test('for less than the time that bodies have, none is refused, and they are stored in the order in which they came', async () => {
    vi.useFakeTimers();
    const backMs = performance.now() + 2_000;
    const stored: string[] = [];
    const { add } = batcher({
      store: async (bodies) => {
        if (performance.now() < backMs) throw new AwayError();
        stored.push(...bodies.map(String));
      },
    });
    const adds: Promise<string>[] = [];
    for (let n = 0; n < 250; n += 1) {
      adds.push(reasonOf(add(body(String(n)))));
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(new Set(await Promise.all(adds))).toEqual(new Set(['stored']));
    expect(stored).toEqual(adds.map((_add, n) => String(n)));
  });

  test('for longer, each body is refused when its own time is over, with the reason', async () => {
    vi.useFakeTimers();
    const { add, drained } = batcher({
      store: async () => {
        throw new AwayError('the server starts');
      },
    });
    const first = add(body('1'));
    const refused = expect(first).rejects.toMatchObject({
      reason: 'not_stored',
      cause: { message: 'the server starts' },
    });
    await vi.advanceTimersByTimeAsync(3_000);
    const second = reasonOf(add(body('2')));
    await vi.advanceTimersByTimeAsync(1_000);
    await refused;
    await vi.advanceTimersByTimeAsync(2_999);
    expect(await Promise.race([second, Promise.resolve('waiting')])).toBe('waiting');
    await vi.advanceTimersByTimeAsync(1);
    // It came when an earlier batch was under way: it was not given to the database yet.
    expect(['too_slow', 'not_stored']).toContain(await second);
    await vi.advanceTimersByTimeAsync(1_000);
    await drained();
  });
});

describe('a database that hangs', () => {
  test('bodies are answered for after the time-out, and later ones do not wait behind the hanging batch', async () => {
    vi.useFakeTimers();
    let calls = 0;
    const { add } = batcher({ store: () => (++calls === 1 ? new Promise(() => {}) : Promise.resolve()) });
    const first = reasonOf(add(body('1')));
    await vi.advanceTimersByTimeAsync(3_999);
    const second = reasonOf(add(body('2')));
    await vi.advanceTimersByTimeAsync(1);
    expect(await first).toBe('too_slow');
    expect(await second).toBe('stored');
  });

  test('no more than three statements hang at a time, and all goes on when they come back', async () => {
    vi.useFakeTimers();
    const hanging: (() => void)[] = [];
    const store = vi.fn(() => new Promise<void>((resolve) => hanging.push(resolve)));
    const { add } = batcher({ store });
    const reasons = [];
    for (let second = 0; second < 30; second += 1) {
      reasons.push(reasonOf(add(body('x'))));
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(store).toHaveBeenCalledTimes(3);
    store.mockImplementation(async () => {});
    for (const answer of hanging) answer();
    await vi.advanceTimersByTimeAsync(1_000);
    const last = reasonOf(add(body('y')));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await last).toBe('stored');
    expect(new Set((await Promise.all(reasons)).slice(0, 20))).toEqual(new Set(['too_slow']));
  });

  test('a statement that never comes back does not count for ever', async () => {
    vi.useFakeTimers();
    const store = vi.fn(() => new Promise<void>(() => {}));
    const { add } = batcher({ store });
    for (let second = 0; second < 120; second += 1) {
      void reasonOf(add(body('x')));
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(store.mock.calls.length).toBeGreaterThan(6);
    expect(store.mock.calls.length).toBeLessThan(15);
  });

  test('more than the allowed bytes are refused at once, and there is room again once they are stored', async () => {
    let release = () => {};
    const { add } = batcher({
      store: () =>
        new Promise((resolve) => {
          release = resolve;
        }),
      maxWaitingBytes: 100,
    });
    const kept = reasonOf(add(Buffer.alloc(90)));
    expect(await reasonOf(add(Buffer.alloc(20)))).toBe('too_many_waiting');
    release();
    expect(await kept).toBe('stored');
    const next = reasonOf(add(Buffer.alloc(20)));
    await new Promise((resolve) => setImmediate(resolve));
    release();
    expect(await next).toBe('stored');
  });
});
