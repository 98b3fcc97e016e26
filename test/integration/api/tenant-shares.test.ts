import { request } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { saveWaba } from '../../../src/features/accounts/accounts.ts';
import { type Database, openDatabase } from '../../../src/platform/postgres/database.ts';
import { addUser, tenantOf } from '../portal/portal-browser.ts';
import { addKey, OTHER_WABA, startTestApi, type TestApi, WABA } from './api-harness.ts';

/** Of one tenant: shares are the tenant's, however many WABAs, keys and people it has. */
const WABAS = [WABA, '900000000000102', '900000000000103'];

const STATEMENT_SECONDS = 0.1;

/** A pool of the portal's size, of which statements about conversations take a while; counts those under way. */
function slowPool(url: string, poolMax: number) {
  const database = openDatabase({ url, poolMax, applicationName: 'slow' });
  onTestFinished(() => database.destroy());
  const counts = { atOnce: 0, most: 0 };
  const slow: Database = {
    ...database,
    raw: async (text, bindings) => {
      if (!/\bfrom conversations\b/.test(text)) return await database.raw(text, bindings);
      counts.atOnce += 1;
      counts.most = Math.max(counts.most, counts.atOnce);
      try {
        await database.raw('select pg_sleep(:statementSeconds)', { statementSeconds: STATEMENT_SECONDS });
        return await database.raw(text, bindings);
      } finally {
        counts.atOnce -= 1;
      }
    },
  };
  return { slow, counts };
}

async function addWabas({ database }: TestApi): Promise<string> {
  const tenantId = await tenantOf(database, WABA);
  for (const wabaId of WABAS) await saveWaba(database, tenantId, { wabaId, accessTokenSealed: null });
  return tenantId;
}

test('three people on the pages of three WABAs have one tenant’s part; another tenant and operators wait for none', async () => {
  const pools: ReturnType<typeof slowPool>[] = [];
  const api = await startTestApi(async (url) => {
    const [portal, operators] = [slowPool(url, 5), slowPool(url, 2)];
    pools.push(portal, operators);
    return { portalDatabase: portal.slow, operatorDatabase: operators.slow };
  });
  const { database } = api;
  const tenantId = await addWabas(api);
  const people = await Promise.all(
    WABAS.map((_, n) => addUser(api, { email: `p${n}@store.example`, role: 'admin', tenantId })),
  );
  const otherTenant = await tenantOf(database, OTHER_WABA);
  const other = await addUser(api, { email: 'o@bazaar.example', role: 'admin', tenantId: otherTenant });
  const operator = await addUser(api, { email: 'op@example.com', role: 'operator', tenantId: null });
  let isDone = false;
  const flood = Promise.all(
    people.flatMap((browser) =>
      WABAS.flatMap((wabaId) =>
        Array.from({ length: 5 }, () => browser.get(`/portal/w/${wabaId}/conversations`)),
      ),
    ),
  ).then((pages) => {
    isDone = true;
    return pages;
  });
  await expect.poll(() => pools[0]?.counts.atOnce).toBe(2);
  expect((await other.get(`/portal/w/${OTHER_WABA}/conversations`)).statusCode).toBe(200);
  expect((await operator.get(`/portal/w/${OTHER_WABA}/conversations`)).statusCode).toBe(200);
  // Behind the flood either would have come last.
  expect(isDone).toBe(false);
  expect(new Set((await flood).map(({ statusCode }) => statusCode))).toEqual(new Set([200]));
  // Two of the tenant's and the other's, of the five that the portal has.
  expect(pools[0]?.counts.most).toBeLessThanOrEqual(3);
  expect(pools[1]?.counts.most).toBe(1);
});

test('uploads with the keys of three WABAs have one tenant’s slots, and leave another tenant its own', async () => {
  const api = await startTestApi();
  const { app, database } = api;
  await addWabas(api);
  const url = `${await app.listen({ host: '127.0.0.1', port: 0 })}/api/external/media`;
  const keys = await Promise.all(WABAS.map((wabaId) => addKey(database, wabaId)));
  const statuses: (number | undefined)[] = [];
  for (const { authorization } of keys)
    for (let n = 0; n < 4; n += 1) beginUpload(url, authorization, (status) => statuses.push(status));
  // The rest of them are held.
  await expect.poll(() => statuses).toEqual(Array(6).fill(429));
  const { authorization } = await addKey(database, OTHER_WABA);
  const body = new FormData();
  body.set('file', new Blob(['hello'], { type: 'text/plain' }), 'hello.txt');
  const uploaded = await fetch(url, { method: 'POST', headers: { authorization }, body });
  expect(uploaded.status).toBe(201);
  expect(statuses).toHaveLength(6);
});

/** Begins an upload that does not end before the test. */
function beginUpload(url: string, authorization: string, onStatus: (status?: number) => void): void {
  const upload = request(url, {
    method: 'POST',
    headers: { authorization, 'content-type': 'multipart/form-data; boundary=b' },
  });
  onTestFinished(() => void upload.destroy());
  upload.on('error', () => {}).on('response', (response) => onStatus(response.resume().statusCode));
  upload.write(
    '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nbegun',
  );
}
