import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  makeSecretBox,
  parseEncryptionKeys,
  SecretBoxError,
} from '../../../../src/platform/crypto/secret-box.ts';

const OLD = { id: 'k1', key: randomBytes(32) };
const NEW = { id: 'k2', key: randomBytes(32) };
const ROW = 'endpoints|secret|17';

describe('a secret box', () => {
  const box = makeSecretBox([NEW, OLD]);

  test('opens what it sealed, for any text and row', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (plain, row) => {
        expect(box.open(box.seal(plain, row), row)).toBe(plain);
      }),
    );
  });

  test('writes v1:keyId:nonce:ciphertext:tag without the secret, and never the same text twice', () => {
    const secret = 'whsec_verysecretverysecretverysecret';
    const sealed = box.seal(secret, ROW);
    expect(sealed).toMatch(/^v1:k2:[\w-]{16}:[\w-]+:[\w-]{22}$/);
    expect(sealed).not.toContain(Buffer.from(secret).toString('base64url'));
    expect(box.seal(secret, ROW)).not.toBe(sealed);
  });

  test('opens what an older key sealed and seals with the first', () => {
    expect(box.open(makeSecretBox([OLD]).seal('secret', ROW), ROW)).toBe('secret');
    expect(codeOf(() => makeSecretBox([OLD]).open(box.seal('secret', ROW), ROW))).toBe('unknown_key');
  });

  test('does not open in another row', () => {
    expect(codeOf(() => box.open(box.seal('secret', ROW), 'endpoints|secret|18'))).toBe('not_authentic');
  });

  test('does not open under another key of the same id', () => {
    const impostor = makeSecretBox([{ id: NEW.id, key: randomBytes(32) }]);
    expect(codeOf(() => impostor.open(box.seal('secret', ROW), ROW))).toBe('not_authentic');
  });

  test('does not open after any single character was changed', () => {
    const sealed = box.seal('some secret', ROW);
    for (let index = 0; index < sealed.length; index += 1) {
      const changed = `${sealed.slice(0, index)}${sealed[index] === 'A' ? 'B' : 'A'}${sealed.slice(index + 1)}`;
      // The last character of an unpadded base64url part has bits that stand for nothing.
      if (decoded(changed) === decoded(sealed)) continue;
      expect(
        codeOf(() => box.open(changed, ROW)),
        changed,
      ).toMatch(/^(bad_format|unknown_key|not_authentic)$/);
    }
  });

  test('answers anything else with a typed error that shows nothing of it', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 8 }), (garbage) => {
        try {
          box.open(garbage, ROW);
          expect.unreachable();
        } catch (error) {
          expect(error).toBeInstanceOf(SecretBoxError);
          expect(String(error)).not.toContain(garbage);
        }
      }),
    );
  });

  test.each([
    ['no key', []],
    ['a short key', [{ id: 'k', key: randomBytes(16) }]],
    ['a malformed id', [{ id: 'a:b', key: randomBytes(32) }]],
    ['one id twice', [OLD, { id: OLD.id, key: randomBytes(32) }]],
  ])('is not made from %s', (_name, keys) => expect(codeOf(() => makeSecretBox(keys))).toBe('bad_keys'));
});

describe('parseEncryptionKeys', () => {
  test('keeps the order, because the first key encrypts', () => {
    const text = [NEW, OLD].map(({ id, key }) => `${id}:${key.toString('base64')}`).join(', ');
    expect(parseEncryptionKeys(text)).toEqual([NEW, OLD]);
  });

  test('reads a key without an id, as platforms generate them, as k1, also behind one that replaces it', () => {
    const bare = OLD.key.toString('base64');
    expect(parseEncryptionKeys(bare)).toEqual([{ id: 'k1', key: OLD.key }]);
    const both = parseEncryptionKeys(`k2:${NEW.key.toString('base64')},${bare}`);
    expect(both.map(({ id }) => id)).toEqual(['k2', 'k1']);
    expect(catchError(() => parseEncryptionKeys(`${bare},${bare}`))).toMatchObject({ code: 'bad_keys' });
  });

  test.each([
    '',
    'k1',
    'k1:',
    ':AAAA',
    `k1:${randomBytes(31).toString('base64')}`,
    `k1:${randomBytes(32).toString('hex')}`,
    `k1:${OLD.key.toString('base64')},`,
    `k1:${OLD.key.toString('base64')},k1:${NEW.key.toString('base64')}`,
  ])('refuses %j without showing it', (text) => {
    const error = catchError(() => parseEncryptionKeys(text));
    expect(error).toMatchObject({ code: 'bad_keys' });
    const encoded = text.split(':')[1] ?? '';
    if (encoded !== '') expect(String(error)).not.toContain(encoded);
  });
});

function decoded(sealed: string): string {
  return sealed
    .split(':')
    .map((part, index) => (index < 2 ? part : Buffer.from(part, 'base64url').toString('hex')))
    .join(':');
}

function codeOf(run: () => unknown): string {
  const error = catchError(run);
  return error instanceof SecretBoxError ? error.code : `no typed error: ${String(error)}`;
}

function catchError(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return null;
}
