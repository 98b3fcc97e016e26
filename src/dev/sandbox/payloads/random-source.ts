import { createHash, randomBytes } from 'node:crypto';

/** Where the ids of a payload come from. */
export type RandomSource = {
  bytes: (length: number) => Buffer;
  /** Upper-case hex digits. */
  hex: (digits: number) => string;
};

function seededBytes(seed: string): (length: number) => Buffer {
  let counter = 0;
  return (length) => {
    const blocks: Buffer[] = [];
    for (let size = 0; size < length; size += 32) {
      blocks.push(createHash('sha256').update(`${seed}:${counter}`).digest());
      counter += 1;
    }
    return Buffer.concat(blocks).subarray(0, length);
  };
}

/** Creates a source: the same bytes every time for one seed, unpredictable ones without. */
export function createRandomSource(seed?: string): RandomSource {
  const bytes = seed === undefined ? randomBytes : seededBytes(seed);
  return {
    bytes,
    hex: (digits) =>
      bytes(Math.ceil(digits / 2))
        .toString('hex')
        .slice(0, digits)
        .toUpperCase(),
  };
}
