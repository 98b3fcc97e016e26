import type { ChatEntry } from '../chat-log.ts';
import type { PhoneNumber } from '../demo-phone-numbers.ts';
import type { BuiltBody } from '../payloads/inbound-message.ts';
import type { JsonObject } from '../payloads/webhook-body.ts';
import type { UpstreamContext } from '../upstream-context.ts';

/** The one change of a body that was built here. */
type BuiltValue = {
  contacts?: { profile?: { name?: string } }[];
  messages?: JsonObject[];
  statuses?: JsonObject[];
};

function changeOf({ body }: BuiltBody): BuiltValue {
  const [entry] = body.entry as { changes: { value: BuiltValue }[] }[];
  return entry?.changes[0]?.value ?? {};
}

/** Puts what a customer did into the chat, before the platform reports it: a message or a payment. */
export function recordInbound(context: UpstreamContext, phone: PhoneNumber, built: BuiltBody): ChatEntry {
  const { contacts, messages, statuses } = changeOf(built);
  const message = messages?.[0] ?? statuses?.[0] ?? {};
  const customer = message.from ?? message.from_user_id ?? message.recipient_id;
  return context.chat.add(
    {
      side: 'customer',
      id: built.id,
      phoneNumberId: phone.phoneNumberId,
      customer: String(customer ?? ''),
      customerName: contacts?.[0]?.profile?.name ?? null,
      message,
    },
    'sending',
  );
}
