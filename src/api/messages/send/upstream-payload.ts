import { sendMarker } from '../../../messages/send-marker.ts';
import { mergeExtra } from './extra-members.ts';
import type { SendRequest } from './send-body.ts';

/** The upstream message object of a checked request, without `extra`. */
export function messageOf({ phoneNumberId: _, extra: __, ...message }: SendRequest): Record<string, unknown> {
  return { ...message, messaging_product: 'whatsapp', recipient_type: 'individual' };
}

/** Exactly what upstream gets, as JSON text. Without a mark of the sender's own it carries ours. */
export function upstreamPayload(request: SendRequest, messageId: string): string {
  const { messaging_product, recipient_type, ...rest } = messageOf(request);
  const marked = {
    messaging_product,
    recipient_type,
    ...rest,
    biz_opaque_callback_data: request.biz_opaque_callback_data ?? sendMarker(messageId),
  };
  return JSON.stringify(mergeExtra(marked, request.extra ?? {}));
}
