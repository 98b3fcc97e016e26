import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import { openObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import { ObjectStoreUnavailable } from '../../../../src/platform/object-store/store-errors.ts';
import { testSettings } from '../../../support/test-settings.ts';

/** As many as one agent has. */
const SOCKETS = 64;

/** A busy machine has made all connections by then. */
const BOUND_MS = 5_000;

/** A store whose objects begin at once, and end when the test says so. */
async function startStore() {
  const gate = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    response.setHeader('content-length', 2);
    response.write('a');
    if (request.method === 'HEAD') response.end();
    else void gate.promise.then(() => response.end('b'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  onTestFinished(() => server.closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const settings = testSettings('postgres://unused@127.0.0.1/unused', {
    HELIOGRAPH_OBJECT_STORE_URL: `http://127.0.0.1:${port}`,
  });
  const open = () => {
    const store = openObjectStore(loadConfig(settings).objectStore, {
      answerTimeoutMs: BOUND_MS,
      stallTimeoutMs: BOUND_MS,
    });
    onTestFinished(() => store.close());
    return store;
  };
  return { open, endObjects: gate.resolve };
}

test('while readers that do not read hold all connections, the next use is refused in time, and others go on', async () => {
  const { open, endObjects } = await startStore();
  const [serving, uploads] = [open(), open()];
  const readers = await Promise.all(Array.from({ length: SOCKETS }, () => serving.getRange('large')));
  const uses = [serving.getRange('small'), serving.stat('small'), serving.remove('small')];
  for (const { status, reason } of (await Promise.allSettled(uses)) as PromiseRejectedResult[]) {
    expect([status, reason]).toEqual(['rejected', expect.any(ObjectStoreUnavailable)]);
    expect(reason.message).toContain(`no connection within ${BOUND_MS} ms`);
  }
  // A client that has gone away waits for no connection either.
  const gone = new AbortController();
  const unread = serving.getRange('small', undefined, gone.signal);
  gone.abort();
  await expect(unread).rejects.toThrow('nobody waits');
  await uploads.stat('small');
  // The reader's own slowness ends nothing.
  expect(readers.filter(({ destroyed }) => destroyed)).toEqual([]);
  endObjects();
  for (const reader of readers) expect(String(await buffer(reader))).toBe('ab');
  expect(await serving.stat('small')).toEqual({ sizeBytes: 2 });
});
