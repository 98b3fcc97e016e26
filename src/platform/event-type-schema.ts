import { Type } from 'typebox';
import { EVENT_TYPES, MESSAGE_BATCH, UPSTREAM_TYPE_PATTERN } from './event-type.ts';

const UPSTREAM_TYPE = Type.String({
  pattern: UPSTREAM_TYPE_PATTERN,
  maxLength: 73,
  examples: ['upstream.account_update'],
});

/** The form of an event type: one of the six, `upstream.<field>`, or `upstream.*` where types are chosen. */
export const EventTypeSchema = Type.Union([Type.Enum([...EVENT_TYPES]), UPSTREAM_TYPE], {
  examples: ['message'],
});

/** As it is sent: several messages may be one event. */
export const SentEventTypeSchema = Type.Union([Type.Enum([...EVENT_TYPES, MESSAGE_BATCH]), UPSTREAM_TYPE], {
  examples: ['message'],
});
