import { type TSchema, Type } from 'typebox';
import type { EventType } from '../../../platform/event-type.ts';

/** The seven members of every event; members may be added at any time. */
export function envelopeOf<T extends TSchema>(title: string, eventType: EventType, data: T) {
  return Type.Object(
    {
      eventType: Type.Literal(eventType),
      userId: Type.Integer({ description: 'The tenant.' }),
      wabaId: Type.String({ description: 'The WhatsApp Business Account.' }),
      phoneNumberId: Type.String({ description: 'The number that received or sent.' }),
      eventId: Type.String({
        description: 'What happened, not unique: deduplicate by the header webhook-id.',
      }),
      occurredAt: Type.String({
        format: 'date-time',
        description: 'When it was released for delivery, UTC.',
      }),
      data,
    },
    { title },
  );
}

/** The number of the business, as upstream gives it. */
export const Metadata = Type.Object(
  { display_phone_number: Type.Optional(Type.String()), phone_number_id: Type.Optional(Type.String()) },
  { title: 'PhoneNumberMetadata' },
);

/** Upstream's entries of the sender; a customer may be known by a user id only. */
export const Contacts = Type.Array(
  Type.Object(
    {
      profile: Type.Optional(Type.Object({ name: Type.Optional(Type.String()) })),
      wa_id: Type.Optional(Type.String()),
      user_id: Type.Optional(Type.String()),
    },
    { title: 'CustomerContact' },
  ),
);
