import { createHash } from 'node:crypto';

const MAX_LANE_BYTES = 200;
const HASH_PREFIX = 'sha256:';
/** Lanes that are not an event's own: of hashed keys, of replays, of a conversation, of what stepped aside. */
const RESERVED = /^(?:sha256:|replay\/|conversation\/|aside\/)/;
// Control, format, surrogate, private and unassigned characters, and line and paragraph separators.
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u;

/**
 * The lane in which events of one ordering key queue: the key itself where it fits an index and reads well, otherwise
 * its SHA-256. Two well-formed keys never share a lane: a key that looks like a lane of another kind is hashed as well.
 */
export function laneOf(laneKey: string): string {
  const isReadable =
    laneKey !== '' &&
    Buffer.byteLength(laneKey, 'utf8') <= MAX_LANE_BYTES &&
    !UNPRINTABLE.test(laneKey) &&
    !RESERVED.test(laneKey);
  return isReadable ? laneKey : HASH_PREFIX + createHash('sha256').update(laneKey, 'utf8').digest('hex');
}
