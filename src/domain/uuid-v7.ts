import { randomFillSync } from 'node:crypto';

const random = Buffer.alloc(16);

/** A version 7 UUID (RFC 9562): its first 48 bits are `atMs`, so ids of one day lie together and sort by time. */
export function uuidV7(atMs: number): string {
  randomFillSync(random);
  random.writeUIntBE(atMs, 0, 6);
  random[6] = 0x70 | ((random[6] ?? 0) & 0x0f);
  random[8] = 0x80 | ((random[8] ?? 0) & 0x3f);
  const hex = random.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** The UTC day (`YYYY-MM-DD`) a version 7 UUID was made on: the partition its row is in. */
export function dayOfUuidV7(uuid: string): string {
  const atMs = Number.parseInt(uuid.replace('-', '').slice(0, 12), 16);
  return new Date(atMs).toISOString().slice(0, 10);
}
