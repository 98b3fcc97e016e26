import type { EventAttempt, EventDelivery } from '../../deliveries/log/event-deliveries.ts';
import type { ListedEvent } from '../../deliveries/log/event-list.ts';
import { publicDeliveryId, publicEventId } from '../../platform/public-ids.ts';

/** An event as JSON text, in which the body stands exactly as it is sent; `members` come before it. */
export function eventJson(event: ListedEvent, body: string | undefined, members: object): string {
  const known = JSON.stringify({
    id: publicEventId(event.id),
    eventType: event.eventType,
    eventId: event.eventId,
    phoneNumberId: event.phoneNumberId,
    sequence: Number(event.sequence),
    createdAt: event.createdAt.toISOString(),
    occurredAt: event.occurredAt?.toISOString() ?? null,
    ...members,
  });
  return `${known.slice(0, -1)},"body":${body ?? 'null'}}`;
}

/** A delivery as tenants see it. */
export function deliveryOf(delivery: EventDelivery, attempts: readonly EventAttempt[]) {
  const { id, attempts: attemptCount, replayOf, ...shown } = delivery;
  return {
    id: publicDeliveryId(id),
    ...shown,
    attemptCount,
    replayOf: replayOf === null ? null : publicDeliveryId(replayOf),
    attempts: attempts.map(attemptOf),
  };
}

function attemptOf({ deliveryId, errorClass, errorMessage, responseBody, ...attempt }: EventAttempt) {
  return {
    ...attempt,
    error: errorClass === null ? null : { class: errorClass, message: errorMessage ?? '' },
    requestHeaders: withoutSignatures(attempt.requestHeaders),
    // Whatever the receiver sent: bytes that are no UTF-8 become U+FFFD.
    responseBody: responseBody?.toString('utf8') ?? null,
  };
}

/** The log holds none; this keeps it so for what is shown, whatever the log comes to hold. */
function withoutSignatures(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !/signature/i.test(name)));
}
