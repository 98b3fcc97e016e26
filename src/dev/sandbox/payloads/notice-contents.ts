import type { InboundRequest } from './inbound-request.ts';
import type { JsonObject } from './webhook-body.ts';

/** The `system` member: the customer moved to another phone number. */
export function systemContent(
  request: InboundRequest,
  tools: { customer: string; customerName: string },
): JsonObject {
  const newPhone = request.newPhone ?? '12025550199';
  return {
    system: {
      body: `User ${tools.customerName} changed from ${tools.customer} to ${newPhone}`,
      wa_id: newPhone,
      type: 'user_changed_number',
    },
  };
}

const UNSUPPORTED_TEXTS: Record<number, [title: string, details: string]> = {
  131051: ['Message type unknown', 'Message type is currently not supported.'],
  131052: ['Media download error', 'Failed to download the media from the sender.'],
  131060: ['This message is unavailable', 'This message is currently unavailable.'],
};

/** The members of a message that the platform could not pass on. */
export function unsupportedContent(request: InboundRequest): JsonObject {
  const code = request.errorCode ?? 131051;
  const [title, details] = UNSUPPORTED_TEXTS[code] ?? ['Unsupported message', 'Unsupported message.'];
  return {
    errors: [{ code, title, message: title, error_data: { details } }],
    unsupported: { type: request.unsupportedType ?? 'poll' },
  };
}
