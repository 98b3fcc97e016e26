import type { PhoneNumber } from '../demo-accounts.ts';
import type { InboundRequest } from './inbound-request.ts';
import type { MediaReference } from './media-content.ts';
import { type ContentTools, messageContent } from './message-contents.ts';
import { createRandomSource, inboundWamid, outboundWamid, timestampSeconds } from './sources.ts';
import { type JsonObject, webhookBody } from './webhook-body.ts';

/** A built webhook body and the upstream id in it. */
export type BuiltBody = { id: string; body: JsonObject };

const DEFAULT_CUSTOMER = '12025550143';
const DEFAULT_NAME = 'Asha Tester';

function contactOf(request: InboundRequest, from: string): JsonObject {
  const username = request.username === undefined ? {} : { username: request.username };
  return {
    profile: { name: request.name ?? DEFAULT_NAME, ...username },
    ...(from === '' ? {} : { wa_id: from }),
    ...(request.userId === undefined ? {} : { user_id: request.userId }),
  };
}

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
  const id = inboundWamid(customer, random);
  const tools: ContentTools = {
    customer,
    customerName: request.name ?? DEFAULT_NAME,
    businessNumber,
    businessMessageId: () => outboundWamid(customer, random),
    customerMessageId: () => inboundWamid(customer, random),
    ...(media === undefined ? {} : { media }),
  };
  const message = {
    ...(from === '' ? {} : { from }),
    ...(request.userId === undefined ? {} : { from_user_id: request.userId }),
    ...(request.groupId === undefined ? {} : { group_id: request.groupId }),
    id,
    timestamp: timestampSeconds(request),
    type: request.type,
    ...contextOf(request, businessNumber),
    ...messageContent(request, tools),
    ...(request.referral === undefined ? {} : { referral: request.referral }),
    ...request.messageFields,
  };
  // The platform sends no contacts with a change of number.
  const contacts = request.type === 'system' ? {} : { contacts: [contactOf(request, from)] };
  return { id, body: webhookBody(phone, { ...contacts, messages: [message] }) };
}
