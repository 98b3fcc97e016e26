import { expect, test } from 'vitest';
import { isDataError } from '../../../../src/platform/postgres/error-class.ts';

const failed = (code: string) => Object.assign(new Error('failed'), { code });

test('only what says so of itself is taken for bad data', () => {
  const data = ['22021', '22P02', '23505', '23514', '54000', 'P0001'];
  expect(data.filter((code) => !isDataError(failed(code)))).toEqual([]);
  const system = ['42501', '42P01', '42883', '26000', '0A000', 'XX001', '57014', '55P03', '40001', '53100'];
  const network = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EMFILE', 'ENOSPC'];
  expect([...system, ...network].filter((code) => isDataError(failed(code)))).toEqual([]);
});

test('a lost connection without a code is no bad data; a mistake in JavaScript is', () => {
  expect(isDataError(new Error('Query read timeout'))).toBe(false);
  expect(isDataError(new Error('Connection terminated unexpectedly'))).toBe(false);
  expect(isDataError(new TypeError('undefined is not a function'))).toBe(true);
  expect(isDataError(Object.assign(new RangeError('too long'), { code: 'ERR_STRING_TOO_LONG' }))).toBe(true);
});
