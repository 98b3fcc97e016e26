import { sendMarker } from '../../../features/messages/statuses.ts';
import { phoneForUpstream } from '../../../platform/phone-number.ts';
import { joined, type Problem } from './problems.ts';
import { Envelope, isReserved, type SendRequest, typeOf } from './send-body.ts';

/** The recipient and the kind of request are given outside of `extra`, where they are checked. */
const NOT_EXTRA = new Set(Object.keys(Envelope.properties));

/** Why `extra` cannot be added: it names a member that is given outside, or that belongs there. */
export function extraProblem(request: SendRequest): Problem | null {
  const wrong = Object.keys(request.extra ?? {}).find(
    (name) => NOT_EXTRA.has(name) || isReserved(name) || Object.hasOwn(request, name),
  );
  if (wrong === undefined) return null;
  return { param: joined('extra', wrong), message: 'This member cannot be given in extra.' };
}

export function messageOf({ phoneNumberId: _, extra, ...message }: SendRequest): Record<string, unknown> {
  return {
    ...message,
    type: typeOf(message),
    messaging_product: 'whatsapp',
    recipient_type: message.recipient_type ?? 'individual',
    ...extra,
  };
}

/** Exactly what upstream gets, as JSON text: a phone number so that it reads the same digits as we do. Without a mark of the sender's own it carries ours. */
export function upstreamPayload(request: SendRequest, messageId: string): string {
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
