import { crc32 } from 'node:zlib';

/** Into how many parts intake is divided. Bodies that wait were stored by this number: it does not change. */
const SHARD_COUNT = 16;

export const SHARDS: readonly number[] = Array.from({ length: SHARD_COUNT }, (_, shard) => shard);

/** The part of intake that a WABA is in: every ordering key lives in one WABA, so order holds within each. */
export function shardOf(wabaId: string): number {
  return crc32(wabaId) % SHARD_COUNT;
}
