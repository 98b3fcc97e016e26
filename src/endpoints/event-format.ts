import { UPSTREAM } from '../platform/event-type.ts';

/** How the bodies of an endpoint's webhooks are written: in Heliograph's envelope, or in that of the upstream platform. */
export type EventFormat = 'heliograph' | 'meta';

/** Event types that endpoints with the format `meta` receive; the others have no form of upstream's. */
const UPSTREAM_FORM_TYPES: readonly string[] = ['message', 'status', 'payment', 'test'];

/** SQL: whether endpoint `e` receives events of the type of event `ev` in its format. */
export const FORMAT_TAKES_EVENT = `(e.format <> 'meta' or ev.event_type in (${UPSTREAM_FORM_TYPES.map((type) => `'${type}'`).join(', ')})
       or ev.event_type like '${UPSTREAM}%')`;

/** Whether endpoints of this format receive events of this type. */
export function formatTakes(format: EventFormat, eventType: string): boolean {
  if (format === 'heliograph') return true;
  return UPSTREAM_FORM_TYPES.includes(eventType) || eventType.startsWith(UPSTREAM);
}
