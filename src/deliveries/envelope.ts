import { createHash } from 'node:crypto';
import type { EventType } from '../platform/event-type.ts';

const USER_ID_NUMBER = /^(0|[1-9]\d*)$/;

/** `phoneNumberId` of every `test` event. */
export const TEST_PHONE_NUMBER_ID = 'TEST_PHONE_NUMBER_ID';

const TEST_NOTICE = 'This is a test event. Your webhook endpoint is set up.';

/** What the envelope of an event says; `dataJson` is the JSON text of `data`. */
type EventEnvelope = {
  eventType: EventType;
  /** A whole number, also as text because PostgreSQL's bigint comes as text. */
  userId: number | bigint | string;
  wabaId: string;
  phoneNumberId: string;
  eventId: string;
  /** The moment the event is released for delivery. */
  occurredAt: Date;
  dataJson: string;
};

/**
 * The body of a webhook: the seven members of the product spec in its order, `data` exactly as given.
 * Throws TypeError when userId is no whole number and RangeError when occurredAt is no date.
 */
export function serializeEvent(envelope: EventEnvelope): string {
  const userId = String(envelope.userId);
  if (!USER_ID_NUMBER.test(userId)) throw new TypeError('userId is not a whole number');
  return (
    `{"eventType":${JSON.stringify(envelope.eventType)}` +
    `,"userId":${userId}` +
    `,"wabaId":${JSON.stringify(envelope.wabaId)}` +
    `,"phoneNumberId":${JSON.stringify(envelope.phoneNumberId)}` +
    `,"eventId":${JSON.stringify(envelope.eventId)}` +
    `,"occurredAt":"${envelope.occurredAt.toISOString()}"` +
    `,"data":${envelope.dataJson}}`
  );
}

/** Stored media as `media.ready` announces it. */
type ReadyMedia = {
  metaMessageId: string;
  serviceMessageId: string;
  mediaType: string;
  mimeType: string;
  /** Starts with `/received_media/`. */
  mediaPath: string;
  /** Absolute https base URL of this service. */
  publicBaseUrl: string;
  caption: string | null;
};

/** The eventId of the `media.ready` that follows a `message`. */
export function mediaReadyEventId(messageEventId: string): string {
  return `${messageEventId}_media`;
}

/** JSON text of `data` of a `media.ready` event; `caption` is left out when there is none. */
export function mediaReadyData(media: ReadyMedia): string {
  return JSON.stringify({
    metaMessageId: media.metaMessageId,
    serviceMessageId: media.serviceMessageId,
    mediaType: media.mediaType,
    mimeType: media.mimeType,
    mediaPath: media.mediaPath,
    mediaUrl: media.publicBaseUrl.replace(/\/+$/, '') + media.mediaPath,
    ...(media.caption === null ? {} : { caption: media.caption }),
  });
}

/** JSON text of `data` of a `test` event. */
export function testEventData(businessName: string): string {
  return JSON.stringify({ message: TEST_NOTICE, businessName });
}

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
