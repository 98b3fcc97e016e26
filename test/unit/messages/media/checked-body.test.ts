import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type BodyRules, checkBody } from '../../../../src/features/messages/media/media-body.ts';
import { MediaTooLarge, WrongBytes } from '../../../../src/features/messages/media/media-verdict.ts';

const OPEN: BodyRules = { maxBytes: 1_000_000, expectedBytes: null, expectedSha256: null };

async function* chunked(...chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

async function drain(rules: BodyRules, ...chunks: Uint8Array[]) {
  let passedBytes = 0;
  const { source, result } = checkBody(chunked(...chunks), rules, () => undefined);
  for await (const chunk of source) passedBytes += chunk.length;
  return { passedBytes, ...result() };
}

describe('checking a download on its way', () => {
  test('the bytes pass unchanged, with size, digest and first bytes, however they are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 100 }), { minLength: 1 }),
        async (chunks) => {
          const all = Buffer.concat(chunks);
          const expectedSha256 = createHash('sha256').update(all).digest();
          const checked = await drain({ ...OPEN, expectedBytes: all.length, expectedSha256 }, ...chunks);
          expect(checked).toEqual({
            passedBytes: all.length,
            sizeBytes: all.length,
            sha256: expectedSha256.toString('hex'),
            head: all.subarray(0, 64),
          });
        },
      ),
    );
  });

  test('one byte over the limit ends the download', async () => {
    const rules = { ...OPEN, maxBytes: 10 };
    await expect(drain(rules, Buffer.alloc(10, 1))).resolves.toMatchObject({ sizeBytes: 10 });
    await expect(drain(rules, Buffer.alloc(11, 1))).rejects.toThrow(MediaTooLarge);
  });

  test('a never-ending body is left after its announced size, not at the limit', async () => {
    let pulledChunks = 0;
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (;;) {
        pulledChunks += 1;
        yield Buffer.alloc(10, 1);
      }
    }
    const { source } = checkBody(endless(), { ...OPEN, expectedBytes: 25 }, () => undefined);
    const drained = async () => {
      for await (const _ of source);
    };
    await expect(drained()).rejects.toThrow(WrongBytes);
    expect(pulledChunks).toBe(3);
  });

  test.each([
    ['too short', { ...OPEN, expectedBytes: 4 }],
    ['too long', { ...OPEN, expectedBytes: 2 }],
    ['another digest', { ...OPEN, expectedSha256: Buffer.alloc(32) }],
  ])('%s is wrong', async (_name, rules) => {
    await expect(drain(rules, Buffer.from('abc'))).rejects.toThrow(WrongBytes);
  });

  test('no bytes are wrong unless upstream announced just that', async () => {
    await expect(drain(OPEN)).rejects.toThrow(WrongBytes);
    const expectedSha256 = createHash('sha256').digest();
    await expect(drain({ ...OPEN, expectedSha256 })).resolves.toMatchObject({ sizeBytes: 0 });
  });
});
