import { phoneForUpstream } from '../../../platform/phone-number.ts';
import { sendMarker } from '../statuses.ts';

/** A checked message to send: upstream's members with the number that it goes out from. */
export type MessageToSend = Readonly<Record<string, unknown>> & {
  phoneNumberId: string;
  to?: string;
  recipient?: string;
  recipient_type?: 'individual' | 'group';
  context?: { message_id: string };
  biz_opaque_callback_data?: string;
  extra?: object;
  sendAt?: string;
  notAfter?: string;
};

export const DEFAULT_TYPE = 'text';

/** The type of a message; upstream takes a message without one for a text. */
export function typeOf({ type = DEFAULT_TYPE }: Readonly<Record<string, unknown>>): unknown {
  return type;
}

export function messageOf(request: MessageToSend): Record<string, unknown> {
  const { phoneNumberId: _, sendAt: _at, notAfter: _last, extra, ...message } = request;
  return {
    ...message,
    type: typeOf(message),
    messaging_product: 'whatsapp',
    recipient_type: message.recipient_type ?? 'individual',
    ...extra,
  };
}

/** Exactly what upstream gets, as JSON text: a phone number so that it reads the same digits as we do. Without a mark of the sender's own it carries ours. */
export function upstreamPayload(request: MessageToSend, messageId: string): string {
  const { messaging_product, recipient_type, ...rest } = messageOf(request);
  const { to } = request;
  const isPhone = to !== undefined && recipient_type !== 'group';
  return JSON.stringify({
    messaging_product,
    recipient_type,
    ...rest,
    ...(isPhone && { to: phoneForUpstream(to) }),
    biz_opaque_callback_data: request.biz_opaque_callback_data ?? sendMarker(messageId),
  });
}
