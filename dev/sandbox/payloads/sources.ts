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

const SEEDED_TIMESTAMP_SECONDS = 1_790_000_000;

/** The `timestamp` member of a payload, a string of seconds; fixed for seeded payloads. */
export function timestampSeconds(request: { seed?: string; timestampSeconds?: number }): string {
  const now = request.seed === undefined ? Math.floor(Date.now() / 1000) : SEEDED_TIMESTAMP_SECONDS;
  return String(request.timestampSeconds ?? now);
}

const INBOUND = 0x12;
const OUTBOUND = 0x11;

function encodeWamid(waId: string, direction: number, id: string): string {
  // Lengths are one byte each in the real structure.
  const user = Buffer.from(waId.slice(0, 200));
  const bytes = Buffer.concat([
    Buffer.from([0x1c, 0x18, user.length]),
    user,
    Buffer.from([0x15, 0x02, 0x00, direction, 0x18, id.length]),
    Buffer.from(id),
    Buffer.from([0x00]),
  ]);
  return `wamid.${bytes.toString('base64')}`;
}

/** The id of a message that a customer sent, in the structure of real ids. */
export function inboundWamid(waId: string, random: RandomSource): string {
  return encodeWamid(waId, INBOUND, `3A${random.hex(18)}`);
}

/** The id of a message that the business sent, in the structure of real ids. */
export function outboundWamid(waId: string, random: RandomSource): string {
  return encodeWamid(waId, OUTBOUND, random.hex(18));
}
