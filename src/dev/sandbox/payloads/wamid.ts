import type { RandomSource } from './random-source.ts';

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
