import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { hashPassword, matchingHashes } from '../../../../src/features/users/password-hash.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { freshTenant } from '../../../support/test-accounts.ts';
import { apiOfFile } from '../../api/api-harness.ts';
import { newUser, openBrowser, PASSWORD, signInWith } from '../portal-browser.ts';

const api = apiOfFile();

/** The address of a member of a tenant that no other test knows. */
async function newMember(): Promise<string> {
  const { tenantId } = await freshTenant(api.database);
  return (await newUser(api, tenantId)).email;
}

const strip = (body: string) => body.replace(/name="(_csrf|email)"[^>]*>/g, '');

describe('a failed sign-in', () => {
  test('says the same for a wrong password, an unknown address, a disabled user and one without password', async () => {
    const [known, disabled, passwordless] = [await newMember(), await newMember(), await newMember()];
    await execute(api.database, 'update users set disabled_at = now() where email = :disabled', { disabled });
    await execute(api.database, 'update users set password_hash = null where email = :passwordless', {
      passwordless,
    });
    const attempts = [
      [known, 'wrong password!'],
      ['nobody@store.example', PASSWORD],
      [disabled, PASSWORD],
      [passwordless, PASSWORD],
      ['no address\u0000', PASSWORD],
      [known, ''],
      [known, 'x'.repeat(4_000)],
    ] as const;
    const bodies = new Set();
    for (const [email, password] of attempts) {
      const answer = await signInWith(openBrowser(api.app), email, password);
      expect(answer.statusCode).toBe(422);
      expect(answer.body).toContain('E-mail address or password is wrong.');
      expect(answer.cookies.filter(({ name }) => name === '__Host-heliograph')).toEqual([]);
      bodies.add(strip(answer.body));
    }
    expect(bodies.size).toBe(1);
  });

  test('costs as much for an unknown address as for a wrong password', async () => {
    const known = await newMember();
    const browser = openBrowser(api.app);
    await browser.get('/portal/sign-in');
    // Of this process, all threads: on a busy machine, time tells nothing.
    const costs = { known: [] as number[], unknown: [] as number[] };
    for (let round = 0; round < 5; round += 1) {
      for (const kind of ['known', 'unknown'] as const) {
        const email = kind === 'known' ? known : `nobody${round}@store.example`;
        const before = process.cpuUsage();
        await browser.post('/portal/sign-in', { email, password: 'wrong password!', next: '/portal' });
        const { user, system } = process.cpuUsage(before);
        costs[kind].push(user + system);
      }
    }
    const least = (of: number[]) => Math.min(...of);
    expect(least(costs.unknown)).toBeGreaterThan(least(costs.known) * 0.6);
    expect(least(costs.unknown)).toBeLessThan(least(costs.known) * 1.6);
  });

  test('is in the audit log when there is such a user, and strangers cannot fill it', async () => {
    const email = await newMember();
    await signInWith(openBrowser(api.app), email, 'wrong password!');
    await signInWith(openBrowser(api.app), 'stranger@store.example', 'wrong password!');
    const entries = () =>
      query<{ target: string; actor: string }>(
        api.database,
        `select target, actor from audit_log where action = 'user.sign_in_failed' and target in (:email, :value)`,
        { email: `user ${email}`, value: 'user stranger@store.example' },
      );
    await expect.poll(entries).toEqual([{ target: `user ${email}`, actor: 'nobody' }]);
  });
});

const accountKey = (email: string) => createHash('sha256').update(email).digest('base64url');

/** As if there had been more attempts of a kind since the last one. */
const addAttempts = (key: string, points: number) =>
  execute(api.database, 'update rate_limits set points = points + :points where key = :key', {
    points,
    key: `sign-in-${key}`,
  });

const pairKey = (email: string, address: string) => `pair:${accountKey(email)} ${address}`;
const MANY = '198.51.100.10';
const OWN = '203.0.113.50';

describe('guessing', () => {
  const from = async (address: string, account: string, password?: string) =>
    await signInWith(openBrowser(api.app, address), account, password);

  test('one account from one address is stopped after ten attempts, and its owner elsewhere is not', async () => {
    const email = await newMember();
    expect((await from(MANY, email, 'wrong password!')).statusCode).toBe(422);
    await addAttempts(pairKey(email, MANY), 8);
    expect((await from(MANY, email, 'wrong password!')).statusCode).toBe(422);
    const answer = await from(MANY, email.toUpperCase());
    expect(answer.statusCode).toBe(429);
    expect(answer.body).toContain('Too many attempts');
    const wait = Number(answer.headers['retry-after']);
    expect(wait).toBeGreaterThan(800);
    expect(wait).toBeLessThanOrEqual(900);
    expect((await from(OWN, email)).statusCode).toBe(303);
    // Nor is another account from there.
    expect((await from(MANY, await newMember())).statusCode).toBe(303);
  });

  test('does not keep out a browser that has signed in before, from the same address either', async () => {
    const email = await newMember();
    const browser = openBrowser(api.app, MANY);
    expect((await signInWith(browser, email)).statusCode).toBe(303);
    browser.cookies.delete('__Host-heliograph');
    await from(MANY, email, 'wrong password!');
    await addAttempts(pairKey(email, MANY), 20);
    await addAttempts(`account:${accountKey(email)}`, 1_000);
    expect((await from(OWN, email)).statusCode).toBe(429);
    expect((await from(MANY, email)).statusCode).toBe(429);
    expect((await signInWith(browser, email)).statusCode).toBe(303);
    browser.cookies.delete('__Host-heliograph');
    // It is known for this account, and cannot guess without end either.
    const other = await newMember();
    await from(MANY, other, 'wrong password!');
    await addAttempts(pairKey(other, MANY), 20);
    expect((await signInWith(browser, other)).statusCode).toBe(429);
    const answers = [];
    for (let tries = 0; tries < 11; tries += 1) {
      answers.push((await signInWith(browser, email, 'wrong password!')).statusCode);
    }
    expect(answers).toEqual([...Array(10).fill(422), 429]);
  });

  test('is stopped in all known browsers of an account together, however many somebody collected', async () => {
    const email = await newMember();
    const [collected, another] = [openBrowser(api.app), openBrowser(api.app)];
    for (const browser of [collected, another]) {
      expect((await signInWith(browser, email)).statusCode).toBe(303);
      browser.cookies.delete('__Host-heliograph');
    }
    await signInWith(collected, email, 'wrong password!');
    const [user] = await query<{ id: string }>(api.database, 'select id from users where email = :email', {
      email,
    });
    await addAttempts(`known:${user?.id}`, 98);
    expect((await signInWith(another, email)).statusCode).toBe(303);
    another.cookies.delete('__Host-heliograph');
    await addAttempts(`known:${user?.id}`, 1);
    expect((await signInWith(another, email)).statusCode).toBe(429);
    expect((await from(OWN, email)).statusCode).toBe(303);
  });

  test('is stopped for an address that nobody has just the same', async () => {
    const email = 'nobody-at-all@store.example';
    expect((await from(MANY, email)).statusCode).toBe(422);
    await addAttempts(pairKey(email, MANY), 9);
    expect((await from(MANY, email)).statusCode).toBe(429);
  });

  test('many accounts from one network leaves three attempts for each, and the right password gets in', async () => {
    const email = await newMember();
    expect((await from('2001:db8:1:2::7', 'guess1@store.example')).statusCode).toBe(422);
    await addAttempts('ip:2001:db8:1:2::/64', 28);
    const statuses = [];
    for (let tries = 0; tries < 5; tries += 1) {
      statuses.push((await from('2001:db8:1:2::8', 'guess2@store.example')).statusCode);
    }
    expect(statuses).toEqual([422, 422, 422, 429, 429]);
    expect((await from('2001:db8:1:2:ffff::9', email)).statusCode).toBe(303);
  });

  test('nothing is counted for the right password, which forgets the attempts before', async () => {
    const email = await newMember();
    const address = '198.51.100.77';
    await from(address, email, 'wrong password!');
    expect((await from(address, email)).statusCode).toBe(303);
    const keys = [pairKey(email, address), `account:${accountKey(email)}`, `ip:${address}`];
    const points = await query<{ key: string; points: number }>(
      api.database,
      'select key, points from rate_limits where key = any (cast(:keies as text[])) order by key',
      { keies: keys.map((key) => `sign-in-${key}`) },
    );
    expect(points.map((row) => row.points)).toEqual([1, 1]);
  });
});

test('a crowd of attempts from a few addresses does not make it busy for the others', async () => {
  const email = await newMember();
  const crowd = Array.from({ length: 60 }, (_, index) => openBrowser(api.app, `192.0.2.${index % 3}`));
  for (const browser of crowd) await browser.get('/portal/sign-in');
  const own = openBrowser(api.app, OWN);
  await own.get('/portal/sign-in');
  const fields = (account: string) => ({ email: account, password: PASSWORD, next: '/portal' });
  const answers = crowd.map((browser, index) =>
    browser.post('/portal/sign-in', fields(`nobody${index}@crowd.example`)),
  );
  const mine = await own.post('/portal/sign-in', fields(email));
  expect(mine.statusCode).toBe(303);
  const bodies = (await Promise.all(answers)).map(({ body }) => body);
  expect(bodies.some((body) => body.includes('Too many people'))).toBe(true);
});

test('a hash of other costs is renewed when its password is used', async () => {
  const email = await newMember();
  const old = await hashPassword(PASSWORD, { memory: 8_192, passes: 1, parallelism: 1 });
  await execute(api.database, 'update users set password_hash = :old where email = :email', { old, email });
  expect((await signInWith(openBrowser(api.app), email)).statusCode).toBe(303);
  const [row] = await query<{ hash: string }>(
    api.database,
    'select password_hash as hash from users where email = :email',
    { email },
  );
  expect(row?.hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  expect((await signInWith(openBrowser(api.app), email)).statusCode).toBe(303);
});

test('a sign-in that is under way while the password changes opens nothing', async () => {
  const email = await newMember();
  const browser = openBrowser(api.app);
  await browser.get('/portal/sign-in');
  const next = await hashPassword('another long sentence');
  let signingIn: ReturnType<typeof signInWith> | undefined;
  await api.database.transaction(async (trx) => {
    await execute(trx, 'update users set password_hash = :next where email = :email', { next, email });
    signingIn = signInWith(browser, email);
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await expect.poll(() => query(api.database, waiting)).toHaveLength(1);
  });
  const answer = await signingIn;
  expect([answer?.statusCode, browser.cookies.has('__Host-heliograph')]).toEqual([422, false]);
  expect((await signInWith(browser, email, 'another long sentence')).statusCode).toBe(303);
});

test('hashing leaves the event loop free, and more than a few at a time wait', async () => {
  const email = await newMember();
  const browsers = Array.from({ length: 8 }, () => openBrowser(api.app));
  for (const browser of browsers) await browser.get('/portal/sign-in');
  const fields = { email, password: PASSWORD, next: '/portal' };
  const answers = await Promise.all(browsers.map((browser) => browser.post('/portal/sign-in', fields)));
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(8).fill(303));
  const [thread, whole] = [process.threadCpuUsage(), process.cpuUsage()];
  const hashes = await Promise.all(browsers.map(() => hashPassword(PASSWORD)));
  expect(await matchingHashes(PASSWORD, hashes)).toEqual(hashes);
  expect(process.threadCpuUsage(thread).user).toBeLessThan(process.cpuUsage(whole).user / 4);
});
