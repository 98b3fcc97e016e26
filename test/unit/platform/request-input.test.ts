import { describe, expect, test } from 'vitest';
import {
  checkAccessToken,
  checkDescription,
  checkName,
  checkRowId,
  checkUpstreamId,
  RequestError,
} from '../../../src/platform/request-input.ts';

describe('checks of what a request gives', () => {
  test.each(['', '0x1', '-1', '1'.repeat(65), '1\0', '٣', ' 1'])('no upstream id %j', (id) => {
    expect(() => checkUpstreamId('It', id)).toThrow(RequestError);
  });

  test.each(['', '0', '01', '1.5', '9'.repeat(19), '1\0'])(
    'no row id %j, which would be an error of SQL',
    (id) => {
      expect(() => checkRowId('It', id)).toThrow(RequestError);
    },
  );

  test.each(['a\0b', 'a\u2028b', '\ud800', 'x'.repeat(201)])('no name %j', (name) => {
    expect(() => checkName('It', name)).toThrow(RequestError);
  });

  test('a description may be empty, a name may not; both are trimmed', () => {
    expect(checkDescription('It', ' ')).toBe('');
    expect(() => checkName('It', ' ')).toThrow('must not be empty');
    expect(checkName('It', ` ${'ü'.repeat(200)} `)).toHaveLength(200);
  });

  test('a refused access token is not repeated in the message', () => {
    expect(checkAccessToken(' EAAG\n')).toBe('EAAG');
    for (const token of ['', 'EAAG secret', 'EAAG\0secret', 'x'.repeat(4097), 'EAAGsecrét']) {
      expect(() => checkAccessToken(token)).toThrow(/^(?!.*secr)The access token/);
    }
  });
});
