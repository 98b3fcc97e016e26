import { randomFillSync } from 'node:crypto';

const random = Buffer.alloc(16);

let lastMs = 0;
let counter = 0;
const MAX_COUNTER = 0x0fff;

/**
 * A version 7 UUID (RFC 9562): its first 48 bits are `atMs`, so ids of one day lie together and sort by time. Those
 * that one process makes for the same millisecond sort in the order in which they are made, up to 4,096 of them.
 */
export function uuidV7(atMs: number): string {
  counter = atMs === lastMs ? Math.min(counter + 1, MAX_COUNTER) : 0;
  lastMs = atMs;
  randomFillSync(random, 8);
  random.writeUIntBE(atMs, 0, 6);
  random.writeUInt16BE(0x7000 | counter, 6);
  random[8] = 0x80 | ((random[8] ?? 0) & 0x3f);
  const hex = random.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** When a version 7 UUID was made, ms since 1970. */
export function msOfUuidV7(uuid: string): number {
  return Number.parseInt(uuid.slice(0, 8) + uuid.slice(9, 13), 16);
}

/** The lowest UUID of a millisecond: version 7 UUIDs made from then on are not below it. */
export function lowestUuidAt(atMs: number): string {
  const hex = Math.max(0, atMs).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-0000-0000-000000000000`;
}

/** The UTC day (`YYYY-MM-DD`) a version 7 UUID was made on: the partition its row is in. */
export function dayOfUuidV7(uuid: string): string {
  return new Date(msOfUuidV7(uuid)).toISOString().slice(0, 10);
}
