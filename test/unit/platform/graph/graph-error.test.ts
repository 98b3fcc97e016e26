import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type GraphError,
  graphErrorOf,
  isObjectGone,
  isTokenError,
  noAnswer,
} from '../../../../src/platform/graph/graph-error.ts';

const FOLDER = new URL('../../../fixtures/upstream/graph/', import.meta.url);

function fixture(name: string): GraphError {
  const { status, body } = JSON.parse(readFileSync(new URL(`${name}.json`, FOLDER), 'utf8'));
  return graphErrorOf({ status, retryAfter: undefined, body });
}

describe('what an upstream error means', () => {
  test.each([
    ['err_2_service', true],
    ['err_130429', true],
    ['err_131056', true],
    ['err_190_token', false],
    ['err_200_permission', false],
    ['err_131009', false],
    ['err_131047', false],
    ['err_132001', false],
    ['err_134011_payments_tos', false],
    ['media_get_400_gone', false],
    ['media_get_400_phone_number_id', false],
  ])('%s: worth repeating is %s', (name, transient) => {
    expect(fixture(name).transient).toBe(transient);
  });

  test.each([138_038, 2_494_191])('%i, of another role, is never worth repeating', (code) => {
    for (const status of [400, 429, 500, 503])
      for (const is_transient of [true, false]) {
        const error = graphErrorOf({ status, retryAfter: '1', body: { error: { code, is_transient } } });
        expect([status, is_transient, error.transient]).toEqual([status, is_transient, false]);
      }
  });

  test('429 and 5xx are worth repeating whatever any other code says', () => {
    for (const status of [429, 500, 502, 503, 504]) {
      const error = graphErrorOf({ status, retryAfter: undefined, body: { error: { code: 100 } } });
      expect(error.transient).toBe(true);
    }
  });

  test('only code 100 with subcode 33 says that an object is gone', () => {
    expect(isObjectGone(fixture('media_get_400_gone'))).toBe(true);
    expect(isObjectGone(fixture('media_get_400_phone_number_id'))).toBe(false);
  });

  test('an ended token is told by its code and by a bare 401', () => {
    expect(isTokenError(fixture('err_190_token'))).toBe(true);
    expect(isTokenError(graphErrorOf({ status: 401, retryAfter: undefined, body: null }))).toBe(true);
    expect(isTokenError(fixture('err_200_permission'))).toBe(false);
    expect(isTokenError(noAnswer('ECONNRESET'))).toBe(false);
  });

  test('Retry-After of a refusal is kept in ms', () => {
    expect(graphErrorOf({ status: 429, retryAfter: '7', body: null }).retryAfterMs).toBe(7_000);
  });

  test('any JSON body gives an error and never throws', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.integer({ min: 300, max: 599 }), (body, status) => {
        const error = graphErrorOf({ status, retryAfter: undefined, body });
        expect(error.httpStatus).toBe(status);
        expect(error.message.length).toBeGreaterThan(0);
      }),
    );
  });
});
