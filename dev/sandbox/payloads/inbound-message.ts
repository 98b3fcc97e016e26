import type { PhoneNumber } from '../demo-accounts.ts';
import { contactOf, userIdOf } from './customer-identity.ts';
import type { InboundRequest } from './inbound-request.ts';
import type { MediaReference } from './media-content.ts';
import { type ContentTools, messageContent } from './message-contents.ts';
import { createRandomSource, inboundWamid, outboundWamid, timestampSeconds } from './sources.ts';
import { type JsonObject, webhookBody } from './webhook-body.ts';

/** A built webhook body and the upstream id in it. */
export type BuiltBody = { id: string; body: JsonObject };

const DEFAULT_CUSTOMER = '12025550143';
const DEFAULT_NAME = 'Asha Tester';

function contextOf(request: InboundRequest, businessNumber: string): JsonObject {
  if (request.replyTo !== undefined) {
    return { context: { from: businessNumber, id: request.replyTo } };
  }
  return request.forwarded ? { context: { forwarded: true } } : {};
}

/**
 * Builds the webhook body of one inbound message of any type.
 * @param media what the message refers to; needed for media types only.
 */
export function buildInboundMessage(
  request: InboundRequest,
  phone: PhoneNumber,
  media?: MediaReference,
): BuiltBody {
  const random = createRandomSource(request.seed);
  const from = request.from ?? DEFAULT_CUSTOMER;
  const customer = from === '' ? DEFAULT_CUSTOMER : from;
  const businessNumber = phone.displayPhoneNumber.replace(/\D/g, '');
  const userId = request.userId ?? userIdOf(customer, phone);
  const identity = { waId: from || undefined, userId: userId || undefined };
  const id = inboundWamid(customer, random);
  const tools: ContentTools = {
    customer,
    customerName: request.name ?? DEFAULT_NAME,
    userIdOf: (waId) => userIdOf(waId, phone),
    businessNumber,
    businessMessageId: () => outboundWamid(customer, random),
    customerMessageId: () => inboundWamid(customer, random),
    ...(media === undefined ? {} : { media }),
  };
  // The platform sends no contacts and no user id of the sender with a change of number.
  const isSystem = request.type === 'system';
  const message = {
    ...(from === '' ? {} : { from }),
    ...(identity.userId === undefined || isSystem ? {} : { from_user_id: userId }),
    ...(request.groupId === undefined ? {} : { group_id: request.groupId }),
    id,
    timestamp: timestampSeconds(request),
    type: request.type,
    ...contextOf(request, businessNumber),
    ...messageContent(request, tools),
    ...(request.referral === undefined ? {} : { referral: request.referral }),
    ...request.messageFields,
  };
  const profile = { name: request.name ?? DEFAULT_NAME, username: request.username };
  const contacts = isSystem ? {} : { contacts: [contactOf(identity, profile)] };
  return { id, body: webhookBody(phone, { ...contacts, messages: [message] }) };
}
