/** Sent only to endpoints whose event types name it, as `upstream.*`. */
export const WINDOW_CLOSING = 'window.closing';

/** That a customer stopped or resumed messages: sent as WINDOW_CLOSING is. */
export const PREFERENCE = 'preference';

/** So long before the end of the window, unless the endpoint says otherwise. */
export const WINDOW_CLOSING_MINUTES = 60;

export const EVENT_TYPES = [
  'message',
  'status',
  'payment',
  'order',
  'media.ready',
  'test',
  WINDOW_CLOSING,
  PREFERENCE,
] as const;

export type CoreEventType = (typeof EVENT_TYPES)[number];

/** A change that upstream reports in another field than `messages`, or in that field without items: sent to endpoints that ask for it by name. */
export type UpstreamEventType = `upstream.${string}`;

export type EventType = CoreEventType | UpstreamEventType;

/** Several `message` events in one request. Never chosen: endpoints that buffer get it in place of the messages. */
export const MESSAGE_BATCH = 'message.batch';

export type SentEventType = EventType | typeof MESSAGE_BATCH;

/** No endpoint gets them that does not name them. */
const ON_REQUEST: readonly string[] = [WINDOW_CLOSING, PREFERENCE, MESSAGE_BATCH];

export const UPSTREAM = 'upstream.';

/** Stands for every field of upstream, also those to come. */
export const ALL_UPSTREAM = 'upstream.*';

const IS_FIELD = /^[a-z][a-z0-9_]{0,63}$/;

/** Names of upstream's fields in JSON Schema, with `upstream.` before them. */
export const UPSTREAM_TYPE_PATTERN = '^upstream\\.([a-z][a-z0-9_]{0,63}|\\*)$';

/** Whether a field of upstream can be an event: by the form of its name, known or not. */
export function isUpstreamField(field: string): boolean {
  return IS_FIELD.test(field);
}

export function upstreamTypeOf(field: string): UpstreamEventType {
  return `${UPSTREAM}${field}`;
}

function isUpstreamType(type: string): type is UpstreamEventType {
  return type.startsWith(UPSTREAM) && (type === ALL_UPSTREAM || isUpstreamField(type.slice(UPSTREAM.length)));
}

/** The type, if there can be such events; `upstream.*` counts as one. */
export function eventTypeNamed(name: string): EventType | null {
  return EVENT_TYPES.find((known) => known === name) ?? (isUpstreamType(name) ? name : null);
}

/** Whether these event types of an endpoint include a type; null stands for the events of the product spec, and never for one on request. */
export function includesType(wanted: readonly string[] | null, type: string): boolean {
  if (wanted === null) return !ON_REQUEST.includes(type) && !type.startsWith(UPSTREAM);
  return wanted.includes(type) || (type.startsWith(UPSTREAM) && wanted.includes(ALL_UPSTREAM));
}

/** SQL: whether the type in `column` is one of the array `wanted`, of the names that `eventTypeNamed` accepts. */
export function typeIsAmong(column: string, wanted: string): string {
  return `(${column} = any (${wanted}) or '${ALL_UPSTREAM}' = any (${wanted}) and ${column} like '${UPSTREAM}%')`;
}

/** SQL: whether only those get the type in `column` that ask for it by name. */
export function typeIsOnRequest(column: string): string {
  return `(${column} in (${ON_REQUEST.map((type) => `'${type}'`).join(', ')}) or ${column} like '${UPSTREAM}%')`;
}

/** SQL: as `includesType`, for the column `event_types` of an endpoint. */
export function typeIsWanted(column: string, wanted: string): string {
  return `case when ${wanted} is null then not ${typeIsOnRequest(column)} else ${typeIsAmong(column, wanted)} end`;
}
