import { expect, test } from 'vitest';
import { hashPassword } from '../../../src/features/users/password-hash.ts';
import { checkPassword } from '../../../src/features/users/passwords.ts';

/** More than run at once and wait together. */
const CROWD = 60;

const cheap = await hashPassword('some password', { memory: 8, passes: 1, parallelism: 1 });
const check = (visitor: { ip: string; deviceId?: string }) =>
  checkPassword('some password', [cheap], visitor).then(
    () => 'checked',
    (error: { code: string }) => error.code,
  );

test('networks of one customer wait in one line, however many there are: a visitor before them and one after them get through', async () => {
  const before = Array.from({ length: 2 }, (_, index) => check({ ip: `192.0.2.${index}` }));
  const first = check({ ip: '203.0.113.1' });
  const crowd = Array.from({ length: CROWD }, (_, index) =>
    check({ ip: `2001:db8:7:${index.toString(16)}::1` }),
  );
  const last = check({ ip: '203.0.113.2' });
  expect([await first, await last, ...(await Promise.all(before))]).toEqual(Array(4).fill('checked'));
  expect(await Promise.all(crowd)).toContain('busy');
});

test('of visitors who all wait in lines of their own the newest are refused, but no known browser', async () => {
  const crowd = Array.from({ length: CROWD }, (_, index) => check({ ip: `198.51.100.${index}` }));
  const known = check({ ip: '198.51.100.200', deviceId: 'a' });
  const later = Array.from({ length: CROWD }, (_, index) => check({ ip: `192.0.2.${index}` }));
  expect(await known).toBe('checked');
  const outcomes = await Promise.all([...crowd, ...later]);
  const firstRefused = outcomes.indexOf('busy');
  expect(firstRefused).toBeGreaterThan(30);
  expect(outcomes.slice(firstRefused).every((outcome) => outcome === 'busy')).toBe(true);
});
