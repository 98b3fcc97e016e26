import { describe, expect, test } from 'vitest';
import { isCommonPassword } from '../../../src/features/users/common-passwords.ts';
import { hashNewPassword } from '../../../src/features/users/passwords.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';

describe('a password that attackers try first', () => {
  test.each([
    ...['password1234', 'P@ssw0rd1234', 'Password2026!!', 'qwerty123456', '1qaz2wsx3edc', 'finalfantasy'],
    ...['123456789012', 'aaaaaaaaaaab', 'abcdefghijklm', '9876543210987', '  iloveyou2026  ', 'dragondragon'],
    ...[
      'michael12345',
      '!!!sunshine!!',
      'sonyericsson',
      'Heliograph2026',
      'summer2026!!',
      'monkeymonkeymonkey',
    ],
    ...[
      'qwertyqwerty12',
      'correcthorsebatterystaple',
      'l1verp00l1234',
      '12345678901234567890',
      'motherfucker',
    ],
  ])('%s is refused', async (password) => {
    expect(await isCommonPassword(password)).toBe(true);
  });
});

describe('another one', () => {
  test.each([
    ...['grille thermos uplift', 'Tr4vertine-Koala', 'xK9#mQ2$vL7p', 'ein langer Satz, den niemand rät'],
    ...['837261940582', 'michael837261940582', 'öäü spitzwegerich 7', '新しい合言葉はこれです、覚えて'],
  ])('%s is taken', async (password) => {
    expect(await isCommonPassword(password)).toBe(false);
  });
});

test('a password has 12 to 256 characters, and no rule says which', async () => {
  // What is refused never gets as far as the database; what is taken is hashed with a salt from there.
  const database = {} as Database;
  const refusal = async (password: string) =>
    await hashNewPassword(database, password, 'ann@shop.example').then(
      () => null,
      (error: unknown) => (error instanceof TypeError ? null : String((error as Error).message)),
    );
  expect(await refusal('elevensigns')).toContain('at least 12');
  expect(await refusal('x7'.repeat(129))).toContain('at most 256');
  expect(await refusal('ann@shop.example')).toContain('e-mail address');
  expect(await refusal('password1234')).toContain('guessed first');
  for (const taken of ['lower case alone', 'UPPER CASE ALONE', '837261940582', '👋🌍 grüße an alle']) {
    expect([taken, await refusal(taken)]).toEqual([taken, null]);
  }
});
