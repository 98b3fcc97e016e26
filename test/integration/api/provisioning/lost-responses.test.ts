import { expect, test } from 'vitest';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { openDatabase } from '../../../../src/platform/postgres/database.ts';
import { queryColumn } from '../../../../src/platform/postgres/sql.ts';
import { apiOfFile, startTestApi, testConfig } from '../api-harness.ts';
import { addPlatformKey, clientWith, fresh, platformClient } from './platform-client.ts';

const api = apiOfFile();

const KEY = { name: 'shop server', scopes: ['send'] };

/** As a process that is killed when it has committed: the next transaction is, and is not answered. */
function dyingAfterCommit(database: Database) {
  let dies = false;
  const died = Promise.withResolvers<void>();
  const dying: Database = {
    ...database,
    transaction: async (work) => {
      const result = await database.transaction(work);
      if (!dies) return result;
      died.resolve();
      return await new Promise<never>(() => {});
    },
  };
  return {
    dying,
    dieNext: () => {
      dies = true;
      return died.promise;
    },
  };
}

test.each(['tenant', 'waba', 'key', 'user', 'hook'])(
  'who was not answered, because the process died after the commit of a %s, repeats and has it once',
  async (what) => {
    const { options } = api.database as ReturnType<typeof openDatabase>;
    const own = openDatabase(options);
    const { dying, dieNext } = dyingAfterCommit(own);
    const { name, wabaId } = fresh();
    const { authorization } = await addPlatformKey(api.database);
    const survivor = clientWith(api, authorization);
    const steps = {
      tenant: { path: `/tenants/${name}`, body: { businessName: 'Acme Ltd' } },
      waba: { path: `/tenants/${name}/wabas/${wabaId}`, body: { accessToken: 'EAAG' } },
      key: { path: `/tenants/${name}/wabas/${wabaId}/keys/shop`, body: KEY },
      user: { path: `/tenants/${name}/users/u_1`, body: { email: `${name}@store.example`, role: 'admin' } },
      hook: { path: `/operations-hooks/${name}`, body: { url: 'https://93.184.216.34/operations' } },
    };
    const dead = await startTestApi(async () => ({ database: api.database, portalDatabase: dying }));
    const ask = clientWith(dead, authorization);
    for (const [step, { path, body }] of Object.entries(steps)) {
      if (step !== what) {
        expect((await survivor('PUT', path, body)).status).toBe(201);
        continue;
      }
      const hasDied = dieNext();
      void ask('PUT', path, body).catch(() => undefined);
      await hasDied;
      const repeated = await survivor('PUT', path, body);
      expect([step, repeated.status]).toEqual([step, 200]);
      if (step === 'user') {
        expect(repeated.body).toMatchObject({ state: 'invited', inviteUrl: null });
        // The lost link ends, and another one can be made.
        expect((await survivor('DELETE', path)).status).toBe(200);
        expect((await survivor('PUT', path, body)).body.inviteUrl).toEqual(expect.any(String));
      }
      if (step === 'hook') {
        expect(repeated.body.secret).toBe(null);
        const rotated = await survivor('POST', `${path}/rotate-secret`, { overlapHours: 0 });
        expect(rotated.body).toMatchObject({ secret: expect.any(String), previousSecretEndsAt: null });
      }
      if (step === 'key') {
        expect(repeated.body.apiKey).toBe(null);
        // The lost key can be replaced, and ends.
        const rotated = await survivor('POST', `${path}/rotate`, { overlapHours: 0 });
        const ofKey = 'select expires_at <= now() from api_keys where id = :id';
        expect(await queryColumn(api.database, ofKey, { id: repeated.body.id })).toEqual([true]);
        expect(rotated.body.apiKey).toEqual(expect.any(String));
      }
    }
    const found = await survivor('GET', `/tenants/${name}`);
    expect(found.body.wabas).toHaveLength(1);
    await survivor('DELETE', steps.hook.path);
    await own.destroy();
  },
);

test('limits of an hour: what is new is counted, a repetition is not, and the answer says when to come again', async () => {
  const ask = await platformClient(api);
  const { name, wabaId } = fresh();
  const left = (kind: string, points: number) =>
    api.database.raw(
      `insert into rate_limits (key, points, expire) values (:key, :points, :expire)
       on conflict (key) do update set points = excluded.points, expire = excluded.expire`,
      { key: `${kind}:installation`, points, expire: Date.now() + 3_600_000 },
    );
  await left('new-tenants', 599);
  expect((await ask('PUT', `/tenants/${name}`, { businessName: 'x' })).status).toBe(201);
  expect((await ask('PUT', `/tenants/${name}`, { businessName: 'x' })).status).toBe(200);
  const more = await ask('PUT', `/tenants/${fresh().name}`, { businessName: 'x' });
  expect(more).toMatchObject({ status: 429, body: { error: { code: 'rate_limit_exceeded' } } });
  expect(Number(more.headers['retry-after'])).toBeGreaterThan(3_000);
  await ask('PUT', `/tenants/${name}/wabas/${wabaId}`, {});
  await left('new-tenant-keys', 999);
  const keys = `/tenants/${name}/wabas/${wabaId}/keys`;
  expect((await ask('PUT', `${keys}/a`, KEY)).status).toBe(201);
  expect((await ask('PUT', `${keys}/b`, KEY)).status).toBe(429);
  expect((await ask('POST', `${keys}/a/rotate`, { overlapHours: 0 })).status).toBe(429);
  // It was not replaced.
  expect(await ask('PUT', `${keys}/a`, KEY)).toMatchObject({ status: 200, body: { state: 'active' } });
});

test('a platform key makes 200 reads and 200 writes in ten seconds, whatever the installation allows API keys', async () => {
  const rates = {
    HELIOGRAPH_RATE_LIMIT_READS_PER_SECOND: '500',
    HELIOGRAPH_RATE_LIMIT_WRITES_PER_SECOND: '500',
  };
  const limited = await startTestApi(async () => ({ config: testConfig(rates) }));
  const key = await addPlatformKey(limited.database);
  const ask = clientWith(limited, key.authorization);
  const spent = (kind: 'read' | 'write', points: number) =>
    limited.database.raw('insert into rate_limits (key, points, expire) values (:key, :points, :expire)', {
      key: `${kind}:platform key ${key.id}`,
      points,
      expire: Date.now() + 60_000,
    });
  await spent('read', 199);
  await spent('write', 199);
  const tenant = `/tenants/${fresh().name}`;
  const put = () => ask('PUT', tenant, { businessName: 'Acme' });
  for (const request of [() => ask('GET', '/tenants'), put]) {
    const last = await request();
    expect([last.status < 300, last.headers['ratelimit-limit']]).toEqual([true, '200']);
    expect(last.headers['ratelimit-remaining']).toBe('0');
    const more = await request();
    expect(more).toMatchObject({ status: 429, body: { error: { code: 'rate_limit_exceeded' } } });
    expect(Number(more.headers['retry-after'])).toBeGreaterThan(0);
  }
  const { authorization } = await addPlatformKey(limited.database);
  expect((await clientWith(limited, authorization)('GET', '/tenants')).status).toBe(200);
});
