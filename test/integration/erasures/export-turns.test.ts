import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openObjectStore } from '../../../src/platform/object-store/object-store.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { addKey, NUMBER, startTestApi, testConfig, WABA } from '../api/api-harness.ts';
import { addReceivedFile, CUSTOMER } from '../messages/media/received-file.ts';

const BODY = JSON.stringify({ customer: `+${CUSTOMER}` });

/** An API with a customer's file of a size; `mostAtOnce` says how many exports have read it side by side. */
async function startWithFile(sizeBytes: number) {
  const store = openObjectStore(testConfig().objectStore);
  onTestFinished(() => store.close());
  let [open, most] = [0, 0];
  const exportStore: typeof store = {
    ...store,
    getRange: async (...parameters) => {
      const file = await store.getRange(...parameters);
      open += 1;
      most = Math.max(most, open);
      return file.once('close', () => {
        open -= 1;
      });
    },
  };
  const { app, database } = await startTestApi(async () => ({ exportStore }));
  await addReceivedFile({ database, store }, { wabaId: WABA, number: NUMBER, sizeBytes });
  const { authorization } = await addKey(database);
  await execute(database, `update api_keys set scopes = '{export}'`, {});
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  const headers = { authorization, 'content-type': 'application/json' };
  const exported = async () => {
    const answer = await fetch(`${address}/api/external/exports`, { method: 'POST', headers, body: BODY });
    return { status: answer.status, sizeBytes: (await answer.arrayBuffer()).byteLength };
  };
  return { exported, address, authorization, mostAtOnce: () => most };
}

test('a WABA has one export at a time; others wait for it and are whole', async () => {
  const { exported, mostAtOnce } = await startWithFile(2 * 1024 * 1024);
  const answers = await Promise.all(Array.from({ length: 5 }, exported));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(new Set(answers.map(({ sizeBytes }) => sizeBytes)).size).toBe(1);
  expect(mostAtOnce()).toBe(1);
});

test('an export that nobody reads makes room for the next one', async () => {
  const { exported, address, authorization } = await startWithFile(32 * 1024 * 1024);
  const { hostname, port } = new URL(address);
  const unread = connect(Number(port), hostname).on('error', () => {});
  onTestFinished(() => void unread.destroy());
  const head = `POST /api/external/exports HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n`;
  unread.write(`${head}Content-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`);
  await expect.poll(() => unread.bytesRead).toBeGreaterThan(0);
  expect((await exported()).status).toBe(200);
});
