import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import { openObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { startApiProcess } from '../../../support/application-process.ts';
import { seedFixtureAccounts } from '../../../support/test-accounts.ts';
import { createTestDatabase } from '../../../support/test-database.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { addKey, NUMBER, OTHER_NUMBER, OTHER_WABA, WABA } from '../../api/api-harness.ts';
import { addReceivedFile, CUSTOMER } from './received-file.ts';

const READERS = 300;

/** More than lies between the API and a client that reads nothing. */
const LARGE_BYTES = 32 * 1024 * 1024;

const REQUESTS = 10;

/** Without shares a request waits for ever. */
const GIVE_UP_AFTER_MS = 10_000;

test('300 clients that read nothing hold up no file, upload, export or probe of others', async () => {
  const { database, url, close } = await createTestDatabase();
  onTestFinished(close);
  await seedFixtureAccounts(database);
  const bucket = `test-${randomBytes(6).toString('hex')}`;
  const settings = testSettings(url, { HELIOGRAPH_OBJECT_STORE_BUCKET: bucket });
  const store = openObjectStore(loadConfig(settings).objectStore);
  onTestFinished(() => store.close());
  const large = await addReceivedFile(
    { database, store },
    { wabaId: WABA, number: NUMBER, sizeBytes: LARGE_BYTES },
  );
  const other = { wabaId: OTHER_WABA, number: OTHER_NUMBER, sizeBytes: 50_000 };
  const small = await addReceivedFile({ database, store }, other);
  const { authorization } = await addKey(database, OTHER_WABA);
  await execute(database, `update api_keys set scopes = '{read,send,export}'`, {});
  const api = await startApiProcess(settings);
  onTestFinished(() => api.kill());
  const signal = () => AbortSignal.timeout(GIVE_UP_AFTER_MS);
  const ask = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(`${api.url}${path}`, {
      headers: { authorization },
      signal: signal(),
      ...init,
    });
    const bytes = (await answer.arrayBuffer()).byteLength;
    return { status: answer.status, bytes };
  };
  const upload = () => {
    const body = new FormData();
    body.set('file', new Blob(['hello'], { type: 'text/plain' }), 'hello.txt');
    return ask('/api/external/media', { method: 'POST', body });
  };
  const exported = () =>
    ask('/api/external/exports', {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ customer: `+${CUSTOMER}` }),
    });
  expect((await ask(small)).status).toBe(200);

  const readers = Array.from({ length: READERS }, () => openReader(api.url, large));
  await expect.poll(() => readers.some(({ bytesRead }) => bytesRead > 0)).toBe(true);
  for (let n = 0; n < REQUESTS; n += 1) {
    const results = await Promise.all([ask(small), upload(), exported(), ask('/readyz')]);
    expect(results.map(({ status }) => status)).toEqual([200, 201, 200, 200]);
    expect(results[0]?.bytes).toBe(50_000);
  }
  expect(readers.some(({ destroyed }) => !destroyed)).toBe(true);
  const ready = await fetch(`${api.url}/readyz`, { signal: signal() });
  expect(await ready.json()).toMatchObject({ checks: { objectStore: 'ok' } });
});

/** Asks for a file, each time over a connection of its own, and does not read it. */
function openReader(apiUrl: string, path: string): Socket {
  const { hostname, port } = new URL(apiUrl);
  const socket = connect(Number(port), hostname).on('error', () => {});
  onTestFinished(() => void socket.destroy());
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  return socket;
}
