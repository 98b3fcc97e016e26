import { Type } from 'typebox';
import { Body, interactiveKind } from './interactive-parts.ts';
import { strict, text } from './schema-parts.ts';

const MAX_SAVED_ADDRESSES = 100;
/** Members differ from country to country. */
const Values = Type.Object({}, { additionalProperties: Type.String({ maxLength: 1_000 }) });

export const addressMessage = interactiveKind({
  interactiveType: 'address_message',
  header: { types: ['text', 'image', 'video', 'document'] },
  members: {
    body: Body,
    action: strict({
      name: Type.Literal('address_message'),
      parameters: strict({
        country: Type.String({ pattern: '^[A-Z]{2}$' }),
        values: Type.Optional(Values),
        saved_addresses: Type.Optional(
          Type.Array(strict({ id: text(256), value: Values }), { maxItems: MAX_SAVED_ADDRESSES }),
        ),
        validation_errors: Type.Optional(Values),
      }),
    }),
  },
});
