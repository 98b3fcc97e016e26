import { Type } from 'typebox';
import { Body, interactiveKind } from './interactive-parts.ts';
import { strict, text } from './schema-parts.ts';

export const orderStatusMessage = interactiveKind({
  interactiveType: 'order_status',
  members: {
    body: Body,
    action: strict({
      name: Type.Literal('review_order'),
      parameters: strict({
        reference_id: Type.String({ pattern: '^[A-Za-z0-9_.-]{1,35}$' }),
        order: strict({
          status: Type.Enum(['processing', 'partially_shipped', 'shipped', 'completed', 'canceled']),
          description: Type.Optional(text(120)),
        }),
      }),
    }),
  },
});
