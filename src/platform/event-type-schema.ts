import { Type } from 'typebox';
import { EVENT_TYPES, UPSTREAM_TYPE_PATTERN } from './event-type.ts';

/** The form of an event type: one of the six, `upstream.<field>`, or `upstream.*` where types are chosen. */
export const EventTypeSchema = Type.Union(
  [
    Type.Enum([...EVENT_TYPES]),
    Type.String({ pattern: UPSTREAM_TYPE_PATTERN, maxLength: 73, examples: ['upstream.account_update'] }),
  ],
  { examples: ['message'] },
);
