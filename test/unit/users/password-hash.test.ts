import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  hashPassword,
  hashWithSalt,
  isHashOutdated,
  matchingHashes,
} from '../../../src/features/users/password-hash.ts';

const verifyPassword = async (password: string, phc: string) =>
  (await matchingHashes(password, [phc])).length === 1;

test('a hash is a PHC string of argon2id at no less than OWASP’s costs, with a salt of its own', async () => {
  const [one, other] = await Promise.all([
    hashPassword('a sentence of mine'),
    hashPassword('a sentence of mine'),
  ]);
  expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
  expect(one).not.toBe(other);
  expect(isHashOutdated(one)).toBe(false);
});

test('only the password itself verifies, in whichever form of Unicode it was typed', async () => {
  const hash = await hashPassword('Zoë Ångström');
  expect(await verifyPassword('Zoe\u0308 A\u030angstro\u0308m', hash)).toBe(true);
  for (const wrong of ['', 'Zoe Angstrom', 'zoë ångström', 'Zoë Ångström ']) {
    expect(await verifyPassword(wrong, hash)).toBe(false);
  }
});

test('a string of other costs verifies, and is outdated', async () => {
  const made = await hashPassword('password', { memory: 256, passes: 1, parallelism: 1 });
  expect(await verifyPassword('password', made)).toBe(true);
  expect(isHashOutdated(made)).toBe(true);
});

test('a password is tried against many hashes of one salt at the cost of one', async () => {
  const salt = randomBytes(16);
  const [mine, other] = [await hashWithSalt('mine, and long', salt), await hashWithSalt('another one', salt)];
  const many = [...Array<string>(40).fill(other), mine, await hashPassword('of another salt')];
  const cpuOf = async (work: () => Promise<unknown>) => {
    const before = process.cpuUsage();
    await work();
    return process.cpuUsage(before).user;
  };
  const one = await cpuOf(() => matchingHashes('mine, and long', [mine]));
  let found: string[] = [];
  const all = await cpuOf(async () => {
    found = await matchingHashes('mine, and long', many);
  });
  expect(found).toEqual([mine]);
  expect(all).toBeLessThan(one * 10);
  expect([isHashOutdated(mine, salt), isHashOutdated(mine, randomBytes(16))]).toEqual([false, true]);
});

test.each([
  '',
  'password',
  '$2b$10$abcdefghijklmnopqrstuv',
  '$argon2i$v=19$m=256,t=1,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
  '$argon2id$v=19$m=99999999999,t=1,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
])('a string of another form verifies nothing: %s', async (phc) => {
  expect(await verifyPassword('password', phc)).toBe(false);
});
