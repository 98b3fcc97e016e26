import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { verifyUpstreamSignature } from '../../../src/api/inbound/upstream-webhook.ts';
import { anyText } from '../../support/any-text.ts';

type Vectors = {
  app_secret: string;
  bodies: Record<string, { file: string; 'X-Hub-Signature-256': string }>;
};
const WIRE = new URL('../../fixtures/upstream/wire/', import.meta.url);
const vectors: Vectors = JSON.parse(readFileSync(new URL('signatures.json', WIRE), 'utf8'));
const SECRET = vectors.app_secret;

describe.each(Object.entries(vectors.bodies))('the body %s', (_name, vector) => {
  const body = readFileSync(new URL(vector.file, WIRE));
  const header = vector['X-Hub-Signature-256'];

  test('verifies over its raw bytes', () =>
    expect(verifyUpstreamSignature(body, header, [SECRET])).toBe(true));

  test('verifies while another secret is being introduced or retired', () => {
    expect(verifyUpstreamSignature(body, header, ['new', SECRET])).toBe(true);
    expect(verifyUpstreamSignature(body, header, [SECRET, 'old'])).toBe(true);
  });

  test('does not verify when any byte is flipped', () => {
    for (let index = 0; index < body.length; index += 1) {
      const flipped = Buffer.from(body);
      flipped[index] = (flipped[index] ?? 0) ^ 1;
      expect(verifyUpstreamSignature(flipped, header, [SECRET])).toBe(false);
    }
  });

  test('does not verify with a wrong secret, no secret or an empty one', () => {
    expect(verifyUpstreamSignature(body, header, ['other'])).toBe(false);
    expect(verifyUpstreamSignature(body, header, [])).toBe(false);
    const signedWithNothing = `sha256=${createHmac('sha256', '').update(body).digest('hex')}`;
    expect(verifyUpstreamSignature(body, signedWithNothing, [''])).toBe(false);
  });

  test.each([
    ['missing', undefined],
    ['empty', ''],
    ['without its prefix', header.slice('sha256='.length)],
    ['in uppercase', `sha256=${header.slice('sha256='.length).toUpperCase()}`],
    ['with an uppercase prefix', header.replace('sha256', 'SHA256')],
    ['of SHA-1', `sha1=${createHmac('sha1', SECRET).update(body).digest('hex')}`],
    ['too short', header.slice(0, -2)],
    ['too long', `${header}00`],
    ['given twice', `${header}, ${header}`],
    ['followed by a line break', `${header}\n`],
  ])('does not verify with a header that is %s', (_what, given) => {
    expect(verifyUpstreamSignature(body, given, [SECRET])).toBe(false);
  });
});

test('never throws, whatever the header is', () => {
  const headers = fc.oneof(fc.string(), anyText(), fc.anything());
  fc.assert(
    fc.property(headers, (header) => {
      expect(verifyUpstreamSignature(Buffer.from('{}'), header as string, [SECRET])).toBe(false);
    }),
  );
});
