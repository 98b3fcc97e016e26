import { Secret } from 'otpauth';
import { describe, expect, test } from 'vitest';
import {
  newRecoveryCodes,
  newTotpSecret,
  recoveryCodeHash,
  totpStep,
  totpUri,
} from '../../../src/features/users/totp.ts';

/** The secret of RFC 6238, appendix B, and its SHA-1 codes, of which authenticators show the last six digits. */
const SECRET = new Secret({ buffer: new TextEncoder().encode('12345678901234567890').buffer }).base32;
const VECTORS: [number, string][] = [
  [59, '94287082'],
  [1_111_111_109, '07081804'],
  [1_111_111_111, '14050471'],
  [1_234_567_890, '89005924'],
  [2_000_000_000, '69279037'],
  [20_000_000_000, '65353130'],
];

describe('a code', () => {
  test.each(VECTORS)('of the time %i is that of the RFC', (seconds, code) => {
    expect(totpStep(SECRET, code.slice(-6), seconds * 1_000)).toBe(Math.floor(seconds / 30));
  });

  test('counts in its own time step and in those beside it, and names its own', () => {
    const [[seconds, code]] = VECTORS as [[number, string]];
    const step = Math.floor(seconds / 30);
    const at = (steps: number) => totpStep(SECRET, code.slice(-6), (step + steps) * 30_000);
    expect([-2, -1, 0, 1, 2].map(at)).toEqual([null, step, step, step, null]);
  });

  test('may be typed with spaces, and is nothing else than six digits', () => {
    expect(totpStep(SECRET, ' 287 082 ', 59_000)).toBe(1);
    for (const text of ['', '28708', '2870821', 'abcdef', '94287082', '٢٨٧٠٨٢', '-87082', '287082\u0000']) {
      expect([text, totpStep(SECRET, text, 59_000)]).toEqual([text, null]);
    }
  });
});

test('a secret is new each time, has 160 bits, and is in the URI with the address', () => {
  const [one, other] = [newTotpSecret(), newTotpSecret()];
  expect(one).toMatch(/^[A-Z2-7]{32}$/);
  expect(one).not.toBe(other);
  const uri = totpUri(one, 'asha+1@store.example');
  expect(uri).toMatch(/^otpauth:\/\/totp\/Heliograph:asha%2B1%40store\.example\?/);
  expect(new URL(uri).searchParams.get('secret')).toBe(one);
});

test('recovery codes are ten, differ, and are found however they are typed', () => {
  const codes = newRecoveryCodes();
  expect(new Set(codes).size).toBe(10);
  for (const code of codes) {
    expect(code).toMatch(/^[A-Z2-7]{4}(-[A-Z2-7]{4}){3}$/);
    const typed = ` ${code.toLowerCase().replaceAll('-', ' ')} `;
    expect(recoveryCodeHash(typed)).toEqual(recoveryCodeHash(code));
  }
  expect(['', 'AAAA', 'A'.repeat(17), '287082', '1'.repeat(16)].map(recoveryCodeHash)).toEqual(
    Array(5).fill(null),
  );
});
