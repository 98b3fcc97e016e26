import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { adminFailure, alignedFields, alignedTable } from '../../../../src/platform/cli/admin-action.ts';
import { ObjectStoreUnavailable } from '../../../../src/platform/object-store/store-errors.ts';
import { anyText } from '../../../support/any-text.ts';

describe('text of the admin commands', () => {
  test('aligns fields and tables', () => {
    expect(
      alignedFields([
        ['id', 7],
        ['created', new Date(0)],
        ['none', null],
      ]),
    ).toBe('id       7\ncreated  1970-01-01T00:00:00.000Z\nnone     -');
    expect(alignedTable(['A', 'LONG'], [['wide one', ['x', 'y']]], 'nothing')).toBe(
      'A         LONG\nwide one  x, y',
    );
    expect(alignedTable(['A'], [], 'nothing')).toBe('nothing');
  });

  test('says in one line that the object store refuses, and where to correct it', () => {
    const error = new ObjectStoreUnavailable('AccessDenied', new Error('refused'));
    const { message, exitCode } = adminFailure(error, null) ?? {};
    expect(message).toMatch(
      /^The object store is not available: AccessDenied\. .*HELIOGRAPH_OBJECT_STORE_\*\.$/,
    );
    expect(exitCode).toBe(1);
  });

  test('never lets stored text break a line or steer the terminal', () => {
    fc.assert(
      fc.property(anyText(), (text) => {
        expect(alignedFields([['x', text]])).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      }),
    );
    expect(alignedFields([['x', '\u001b[31mred\n\u202eevil']])).toBe('x  [31mred evil');
  });
});
