import type { TracedEvent } from '../../platform/metrics/metrics.ts';

/** `eventId`s that say nothing of the one message or payment that they are about. */
const OF_MANY: ReadonlySet<string | undefined> = new Set(['order', 'test']);

/** The key that all events of one message have, also those that come days later: they share a trace. */
export function traceKeyOf({ type, eventId, uuid }: TracedEvent): string {
  if (uuid !== undefined && OF_MANY.has(type)) return uuid;
  return type === 'media.ready' ? eventId.replace(/_media$/, '') : eventId;
}
