import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import fastify from 'fastify';
import { expect, onTestFinished, test, vi } from 'vitest';
import {
  type DownloadLimits,
  type DownloadOwners,
  shareDownloads,
} from '../../../src/api/shares/download-shares.ts';

const OWNERS: DownloadOwners = { file: 'f', address: 'a', tenant: 't' };
const KIB = 1024;

/** Grace and waits that no test reaches unless it sets others. */
const LIMITS: DownloadLimits = {
  perFile: 2,
  perAddress: 3,
  perTenant: 4,
  total: 5,
  graceMs: 60_000,
  minBytesPerSecond: 32 * KIB,
  maxWaitMs: 60_000,
  checkEveryMs: 10,
};

function sharesWith(limits: Partial<DownloadLimits> = {}) {
  const app = fastify();
  onTestFinished(() => app.close());
  const shares = shareDownloads(app, { ...LIMITS, ...limits });
  const gone = new AbortController();
  onTestFinished(() => gone.abort());
  const open = async (owners: Partial<DownloadOwners>, source: Readable = new PassThrough()) => {
    const stream = await shares.open({ ...OWNERS, ...owners }, gone.signal, async () => source);
    onTestFinished(() => void stream.destroy());
    return stream;
  };
  /** Whether there is a place at once; takes none that is free only later. */
  const hasPlace = async (owners: Partial<DownloadOwners>) => {
    const left = new AbortController();
    const opened = shares.open({ ...OWNERS, ...owners }, left.signal, async () => new PassThrough());
    const result = opened.then(
      (stream) => stream.destroy() !== undefined,
      () => false,
    );
    setImmediate(() => left.abort());
    return await result;
  };
  return { shares, open, hasPlace };
}

/** More than the stream holds while nobody reads it. */
const endless = () =>
  new Readable({
    read() {
      // Later, or a client that reads at once would leave nothing else a turn.
      setImmediate(() => this.push(Buffer.alloc(16 * KIB)));
    },
  });

test.each([
  ['a file', { file: 'f' }, [{}, {}]],
  ['an address', { file: 'other', address: 'a' }, [{ file: '1' }, { file: '2' }, { file: '3' }]],
  [
    'a tenant',
    { file: 'other', address: 'other', tenant: 't' },
    ['1', '2', '3', '4'].map((name) => ({ file: name, address: name })),
  ],
  [
    'the process',
    { file: 'other', address: 'other', tenant: 'other' },
    ['1', '2', '3', '4', '5'].map((name) => ({ file: name, address: name, tenant: name })),
  ],
])(
  'downloads of %s have a limit, and leave places to others until all are taken',
  async (name, one, some) => {
    const { open, hasPlace } = sharesWith();
    const held: Readable[] = [];
    for (const owners of some) {
      expect(await hasPlace(one)).toBe(true);
      held.push(await open(owners));
    }
    expect(await hasPlace(one)).toBe(false);
    const stranger = { file: 'x', address: 'x', tenant: 'x' };
    expect(await hasPlace(stranger)).toBe(name !== 'the process');
    held[0]?.destroy();
    await vi.waitUntil(() => held[0]?.closed);
    expect(await hasPlace(one)).toBe(true);
  },
);

test('a download that waits gets the next place of its owners, and one behind it of another file is not held up', async () => {
  const { open } = sharesWith();
  const [first] = [await open({}), await open({})];
  const waits = open({}, Readable.from([Buffer.from('mine')]));
  expect(await buffer(await open({ file: 'other' }, Readable.from([Buffer.from('other')])))).toEqual(
    Buffer.from('other'),
  );
  first.destroy();
  expect(await buffer(await waits)).toEqual(Buffer.from('mine'));
});

test('a client that reads nothing is cut once its grace is over, and its source with it', async () => {
  const { open } = sharesWith({ graceMs: 50 });
  const source = endless();
  const stream = await open({}, source);
  await vi.waitUntil(() => stream.destroyed && source.destroyed);
});

test('a client that trickles is cut too, one that reads fast and one whose source is slow are not', async () => {
  const { open } = sharesWith({ perFile: 9, graceMs: 200 });
  const [trickled, fast, idle] = [await open({}, endless()), await open({}, endless()), await open({})];
  const timer = setInterval(() => trickled.read(10), 10);
  onTestFinished(() => clearInterval(timer));
  fast.resume();
  await vi.waitUntil(() => trickled.destroyed, 10_000);
  expect([fast.destroyed, idle.destroyed]).toEqual([false, false]);
});

test('whoever reads slowest loses the place that another waits for, and who reads fast keeps it', async () => {
  const { open } = sharesWith();
  const [slow, fast] = [await open({}, endless()), await open({}, endless())];
  fast.resume();
  const waits = await open({}, Readable.from([Buffer.from('mine')]));
  expect([slow.destroyed, fast.destroyed]).toEqual([true, false]);
  expect(await buffer(waits)).toEqual(Buffer.from('mine'));
});

test('the wait for a place ends after a time with 503, or with the client, and takes no place', async () => {
  const { open, shares, hasPlace } = sharesWith({ maxWaitMs: 30 });
  const held = [await open({}), await open({})];
  await expect(open({})).rejects.toMatchObject({ code: 'service_unavailable' });
  const left = AbortSignal.abort();
  await expect(shares.open(OWNERS, left, async () => new PassThrough())).rejects.toThrow();
  for (const stream of held) stream.destroy();
  await vi.waitUntil(() => held.every(({ closed }) => closed));
  expect(await hasPlace({})).toBe(true);
});

test('a store that fails takes no place', async () => {
  const { shares, hasPlace } = sharesWith({ perFile: 1 });
  const failing = shares.open(OWNERS, new AbortController().signal, async () => {
    throw new Error('away');
  });
  await expect(failing).rejects.toThrow('away');
  expect(await hasPlace({})).toBe(true);
});
