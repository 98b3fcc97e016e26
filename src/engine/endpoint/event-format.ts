import { UPSTREAM } from '../../platform/event-type.ts';

export type EventFormat = 'heliograph' | 'meta';

/** The other types have no form of upstream's. */
const UPSTREAM_FORM_TYPES: readonly string[] = ['message', 'status', 'payment', 'test'];

export const FORMAT_TAKES_EVENT = `(e.format <> 'meta' or ev.event_type in (${UPSTREAM_FORM_TYPES.map((type) => `'${type}'`).join(', ')})
       or ev.event_type like '${UPSTREAM}%')`;

export function formatTakes(format: EventFormat, eventType: string): boolean {
  if (format === 'heliograph') return true;
  return UPSTREAM_FORM_TYPES.includes(eventType) || eventType.startsWith(UPSTREAM);
}
