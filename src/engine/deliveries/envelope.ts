import { type EventType, MESSAGE_BATCH } from '../../platform/event-type.ts';

const USER_ID_NUMBER = /^(0|[1-9]\d*)$/;

export const TEST_PHONE_NUMBER_ID = 'TEST_PHONE_NUMBER_ID';

const TEST_NOTICE = 'This is a test event. Your webhook endpoint is set up.';

/** The content of an event's envelope; `dataJson` is the JSON text of `data`. */
type EventEnvelope = {
  eventType: EventType;
  /** A whole number, also as text because PostgreSQL's bigint comes as text. */
  userId: number | bigint | string;
  wabaId: string;
  phoneNumberId: string | null;
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

/** The body of several events in one, up to the first of them; between them stands a comma, behind them `BATCH_END`. */
export function batchStart(eventId: string, count: number): string {
  return `{"eventType":"${MESSAGE_BATCH}","eventId":${JSON.stringify(eventId)},"count":${count},"events":[`;
}

export const BATCH_END = ']}';

type ReadyMedia = {
  metaMessageId: string;
  serviceMessageId: string;
  mediaType: string;
  mimeType: string;
  /** Starts with `/received_media/`. */
  mediaPath: string;
  mediaUrl: string;
  caption: string | null;
};

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
    mediaUrl: media.mediaUrl,
    ...(media.caption === null ? {} : { caption: media.caption }),
  });
}

/** JSON text of `data` of a `test` event. */
export function testEventData(businessName: string): string {
  return JSON.stringify({ message: TEST_NOTICE, businessName });
}
