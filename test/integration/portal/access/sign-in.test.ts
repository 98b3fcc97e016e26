import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { execute, query } from '../../../../src/database/sql.ts';
import { hashPassword } from '../../../../src/domain/password-hash.ts';
import { startTestApi, type TestApi, WABA } from '../../api/api-harness.ts';
import { addUser, openBrowser, PASSWORD, signInWith, tenantOf } from '../portal-browser.ts';

let api: TestApi;
let close: () => Promise<void>;

beforeAll(async () => {
  api = await startTestApi(undefined, (closeApi) => {
    close = closeApi;
  });
});
afterAll(() => close());

let count = 0;
async function newUser(): Promise<string> {
  count += 1;
  const email = `person${count}@store.example`;
  await addUser(api, { email, role: 'member', tenantId: await tenantOf(api.database, WABA) });
  return email;
}

const strip = (body: string) => body.replace(/name="(_csrf|email)"[^>]*>/g, '');

describe('a failed sign-in', () => {
  test('says the same for a wrong password, an unknown address, a disabled user and one without password', async () => {
    const [known, disabled, passwordless] = [await newUser(), await newUser(), await newUser()];
    await execute(api.database, 'update users set disabled_at = now() where email = ?', [disabled]);
    await execute(api.database, 'update users set password_hash = null where email = ?', [passwordless]);
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
      expect(answer.body).toContain('E-mail address or password are wrong.');
      expect(answer.cookies.filter(({ name }) => name === '__Host-heliograph')).toEqual([]);
      bodies.add(strip(answer.body));
    }
    expect(bodies.size).toBe(1);
  });

  test('costs as much for an unknown address as for a wrong password', async () => {
    const known = await newUser();
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
    const email = await newUser();
    await signInWith(openBrowser(api.app), email, 'wrong password!');
    await signInWith(openBrowser(api.app), 'stranger@store.example', 'wrong password!');
    const entries = () =>
      query<{ target: string; actor: string }>(
        api.database,
        `select target, actor from audit_log where action = 'user.sign_in_failed' and target in (?, ?)`,
        [`user ${email}`, 'user stranger@store.example'],
      );
    await expect.poll(entries).toEqual([{ target: `user ${email}`, actor: 'nobody' }]);
  });
});

/** As if there had been more attempts of a kind since the last one. */
const addAttempts = (kind: 'ip' | 'account', key: string, points: number) =>
  execute(api.database, 'update rate_limits set points = points + ? where key = ?', [
    points,
    `sign-in-${kind}:${key}`,
  ]);

const accountKey = (email: string) => createHash('sha256').update(email).digest('base64url');

describe('guessing', () => {
  test('one account is stopped after ten attempts, from wherever they come, and the right password too', async () => {
    const email = await newUser();
    expect((await signInWith(openBrowser(api.app), email, 'wrong password!')).statusCode).toBe(422);
    await addAttempts('account', accountKey(email), 8);
    expect((await signInWith(openBrowser(api.app), email, 'wrong password!')).statusCode).toBe(422);
    const answer = await signInWith(openBrowser(api.app), email.toUpperCase());
    expect(answer.statusCode).toBe(429);
    expect(answer.body).toContain('Too many attempts');
    const wait = Number(answer.headers['retry-after']);
    expect(wait).toBeGreaterThan(800);
    expect(wait).toBeLessThanOrEqual(900);
    await execute(api.database, 'update rate_limits set expire = 0 where key like ?', ['sign-in-account%']);
    expect((await signInWith(openBrowser(api.app), email)).statusCode).toBe(303);
  });

  test('is stopped for an address that nobody has just the same', async () => {
    const email = 'nobody-at-all@store.example';
    expect((await signInWith(openBrowser(api.app), email)).statusCode).toBe(422);
    await addAttempts('account', accountKey(email), 9);
    expect((await signInWith(openBrowser(api.app), email)).statusCode).toBe(429);
  });

  test('many accounts from one network is stopped after thirty attempts, and other networks go on', async () => {
    const email = await newUser();
    const from = (address: string, account: string) => signInWith(openBrowser(api.app, address), account);
    expect((await from('2001:db8:1:2::7', 'guess1@store.example')).statusCode).toBe(422);
    await addAttempts('ip', '32.1.13.184.0.1.0.2/64', 28);
    expect((await from('2001:db8:1:2::8', 'guess2@store.example')).statusCode).toBe(422);
    expect((await from('2001:db8:1:2:ffff::9', email)).statusCode).toBe(429);
    expect((await from('2001:db8:1:3::7', email)).statusCode).toBe(303);
  });

  test('nothing is counted for the right password, which forgets the attempts against the account', async () => {
    const email = await newUser();
    const browser = openBrowser(api.app, '198.51.100.77');
    await signInWith(browser, email, 'wrong password!');
    expect((await signInWith(browser, email)).statusCode).toBe(303);
    const points = await query(api.database, 'select key, points from rate_limits where key in (?, ?)', [
      `sign-in-account:${accountKey(email)}`,
      'sign-in-ip:198.51.100.77',
    ]);
    expect(points).toEqual([{ key: 'sign-in-ip:198.51.100.77', points: 1 }]);
  });
});

test('a hash of other costs is renewed when its password is used', async () => {
  const email = await newUser();
  const old = await hashPassword(PASSWORD, { memory: 8_192, passes: 1, parallelism: 1 });
  await execute(api.database, 'update users set password_hash = ? where email = ?', [old, email]);
  expect((await signInWith(openBrowser(api.app), email)).statusCode).toBe(303);
  const [row] = await query<{ hash: string }>(
    api.database,
    'select password_hash as hash from users where email = ?',
    [email],
  );
  expect(row?.hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  expect((await signInWith(openBrowser(api.app), email)).statusCode).toBe(303);
});

test('hashing leaves the event loop free, and more than a few at a time wait', async () => {
  const email = await newUser();
  const browsers = Array.from({ length: 8 }, () => openBrowser(api.app));
  for (const browser of browsers) await browser.get('/portal/sign-in');
  let longestMs = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - last);
    last = performance.now();
  }, 5);
  const fields = { email, password: PASSWORD, next: '/portal' };
  const answers = await Promise.all(browsers.map((browser) => browser.post('/portal/sign-in', fields)));
  clearInterval(timer);
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(8).fill(303));
  expect(longestMs).toBeLessThan(400);
});
