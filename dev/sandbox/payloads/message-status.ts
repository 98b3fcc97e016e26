import type { PhoneNumber } from '../demo-accounts.ts';
import { contactOf, demoNameOf, userIdOf } from './customer-identity.ts';
import type { BuiltBody } from './inbound-message.ts';
import { timestampSeconds } from './sources.ts';
import { type JsonObject, webhookBody } from './webhook-body.ts';

/** What a caller may say about the status of a message that the business sent. */
export type StatusRequest = {
  /** The wamid of the message. */
  id: string;
  status: string;
  seed?: string;
  phoneNumberId?: string;
  timestampSeconds?: number;
  /** The recipient's phone number in digits; absent when the send named a user id only. */
  recipientId?: string;
  recipientUserId?: string;
  /** The caller's own text from the send, echoed by the platform. */
  opaqueData?: string;
  errorCode?: number;
  fields?: JsonObject;
  /** Whom the status is about, where the recipient is a group. */
  participantId?: string;
};

/** The JSON schema of StatusRequest. */
export const statusRequestProperties = {
  type: { const: 'status' },
  id: { type: 'string', minLength: 1, maxLength: 500 },
  status: { type: 'string', minLength: 1, maxLength: 100 },
  seed: { type: 'string' },
  phoneNumberId: { type: 'string' },
  timestampSeconds: { type: 'integer', minimum: 0 },
  recipientId: { type: 'string' },
  recipientUserId: { type: 'string' },
  opaqueData: { type: 'string', maxLength: 512 },
  errorCode: { type: 'integer' },
  fields: { type: 'object' },
} as const;

const PRICING = {
  pricing: { billable: false, pricing_model: 'PMP', type: 'free_customer_service', category: 'service' },
};

const FAILURE_TITLES: Record<number, string> = {
  130472: "User's number is part of an experiment",
  131000: 'Something went wrong',
  131026: 'Message undeliverable',
  131047: 'Re-engagement message',
  131049: 'This message was not delivered to maintain healthy ecosystem engagement.',
  131053: 'Media upload error',
};

function failure(code: number): JsonObject {
  const title = FAILURE_TITLES[code] ?? 'Message failed';
  const href = '/documentation/business-messaging/whatsapp/support/error-codes';
  return { errors: [{ code, title, message: title, error_data: { details: `${title}.` }, href }] };
}

/** The price, or the error, that comes with a status. */
export function statusDetails(request: StatusRequest): JsonObject {
  if (request.status === 'failed') {
    return failure(request.errorCode ?? 131026);
  }
  // Prices come with `sent` and with one of the later statuses, not with `read`.
  return request.status === 'sent' || request.status === 'delivered' ? PRICING : {};
}

/** The customer that a status is about; the platform names none with a failure. */
function contactsOf(request: StatusRequest, phone: PhoneNumber): { contacts?: JsonObject[] } {
  const { status, recipientUserId } = request;
  const waId = request.participantId ?? request.recipientId;
  const userId = recipientUserId ?? (waId === undefined ? undefined : userIdOf(waId, phone));
  if (status === 'failed' || userId === undefined) return {};
  return { contacts: [contactOf({ waId, userId }, { name: demoNameOf(waId) })] };
}

/** Builds the webhook body of one message status. */
export function buildMessageStatus(request: StatusRequest, phone: PhoneNumber): BuiltBody {
  const status = {
    id: request.id,
    status: request.status,
    timestamp: timestampSeconds(request),
    ...(request.recipientId === undefined ? {} : { recipient_id: request.recipientId }),
    ...(request.recipientUserId === undefined ? {} : { recipient_user_id: request.recipientUserId }),
    ...(request.opaqueData === undefined ? {} : { biz_opaque_callback_data: request.opaqueData }),
    ...statusDetails(request),
    ...request.fields,
  };
  return { id: request.id, body: webhookBody(phone, { ...contactsOf(request, phone), statuses: [status] }) };
}
