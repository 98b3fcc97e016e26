import { Type } from 'typebox';
import { messageKind } from './message-kind.ts';
import { strict, text } from './schema-parts.ts';

const degrees = (maximum: number) => Type.Number({ minimum: -maximum, maximum });
/** Upstream’s own examples give them as text too. */
const degreesText = Type.String({ pattern: '^-?\\d{1,3}(\\.\\d{1,20})?$' });

export const locationMessage = messageKind({
  type: 'location',
  content: strict({
    latitude: Type.Union([degrees(90), degreesText]),
    longitude: Type.Union([degrees(180), degreesText]),
    name: Type.Optional(text(1_000)),
    address: Type.Optional(text(1_000)),
  }),
});
