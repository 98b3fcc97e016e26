import type { CartItem, InboundRequest } from './inbound-request.ts';
import { type MediaReference, mediaContent } from './media-content.ts';
import type { JsonObject } from './webhook-body.ts';

/** The `system` member: the customer moved to another phone number. */
function systemContent(
  request: InboundRequest,
  tools: { customer: string; customerName: string; userIdOf: (waId: string) => string },
): JsonObject {
  const newPhone = request.newPhone ?? '12025550199';
  const ids =
    request.userId === ''
      ? {}
      : {
          user_id: tools.userIdOf(newPhone),
          previous_user_id: request.userId ?? tools.userIdOf(tools.customer),
        };
  return {
    system: {
      body: `User ${tools.customerName} changed from ${tools.customer} to ${newPhone}`,
      wa_id: newPhone,
      ...ids,
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
function unsupportedContent(request: InboundRequest): JsonObject {
  const code = request.errorCode ?? 131051;
  const [title, details] = UNSUPPORTED_TEXTS[code] ?? ['Unsupported message', 'Unsupported message.'];
  return {
    errors: [{ code, title, message: title, error_data: { details } }],
    unsupported: { type: request.unsupportedType ?? 'poll' },
  };
}

/** The cart of a demo order: prices are decimal major units, as the platform sends them. */
const DEMO_CART: readonly CartItem[] = [
  { retailerId: 'sku-red-42', quantity: 2, itemPrice: 149.5, currency: 'INR' },
  { retailerId: 'sku-blue-7', quantity: 1, itemPrice: 89.9, currency: 'INR' },
];

/** The `order` member: a cart sent from the catalog. */
function cartContent(request: InboundRequest): JsonObject {
  const items = request.items ?? DEMO_CART;
  return {
    order: {
      catalog_id: request.catalogId ?? '700000000000002',
      text: request.text ?? '',
      product_items: items.map((item) => ({
        product_retailer_id: item.retailerId,
        quantity: item.quantity,
        item_price: item.itemPrice,
        currency: item.currency,
      })),
    },
  };
}

/** What builders need besides the request. */
export type ContentTools = {
  /** The phone number of the customer, digits; a stand-in number for customers without one. */
  customer: string;
  customerName: string;
  userIdOf: (waId: string) => string;
  businessNumber: string;
  /** A wamid of the business to refer to when the request names none. */
  businessMessageId: () => string;
  customerMessageId: () => string;
  /** Present for the media types. */
  media?: MediaReference;
};

type ContentBuilder = (request: InboundRequest, tools: ContentTools) => JsonObject;

function textContent(request: InboundRequest): JsonObject {
  return { text: { body: request.body ?? 'Hello from the sandbox' } };
}

function locationContent(request: InboundRequest): JsonObject {
  const location = {
    latitude: request.latitude ?? 1.23456789012,
    longitude: request.longitude ?? -2.34567890123,
  };
  const place = {
    name: request.title ?? 'Example Coffee',
    address: request.address ?? '1 Example Ave, Sampletown',
  };
  return { location: { ...location, ...place, url: 'https://example.com/' } };
}

function contactsContent(): JsonObject {
  const name = { first_name: 'Farah', last_name: 'Fixture', formatted_name: 'Farah Fixture' };
  const phones = [{ phone: '+1 (202) 555-0150', wa_id: '12025550150', type: 'MOBILE' }];
  return { contacts: [{ name, org: { company: 'Example Org' }, phones }] };
}

function answerContext(request: InboundRequest, tools: ContentTools): JsonObject {
  return { from: tools.businessNumber, id: request.replyTo ?? tools.businessMessageId() };
}

function buttonContent(request: InboundRequest, tools: ContentTools): JsonObject {
  const button = { payload: request.payload ?? 'SANDBOX_PAYLOAD', text: request.text ?? 'Yes please' };
  return { button, context: answerContext(request, tools) };
}

function reactionContent(request: InboundRequest, tools: ContentTools): JsonObject {
  const target = request.targetId ?? tools.businessMessageId();
  // An empty emoji takes the reaction back, which the platform shows by leaving the member out.
  const emoji = request.emoji === '' ? {} : { emoji: request.emoji ?? '👍' };
  return { reaction: { message_id: target, ...emoji } };
}

function editContent(request: InboundRequest, tools: ContentTools): JsonObject {
  const message = tools.media
    ? { context: { id: 'M0' }, type: 'image', ...mediaContent({ ...request, type: 'image' }, tools.media) }
    : { context: { id: 'M0' }, type: 'text', text: { body: request.body ?? 'Corrected text' } };
  return { edit: { original_message_id: request.targetId ?? tools.customerMessageId(), message } };
}

function revokeContent(request: InboundRequest, tools: ContentTools): JsonObject {
  return { revoke: { original_message_id: request.targetId ?? tools.customerMessageId() } };
}

function mediaMember(request: InboundRequest, tools: ContentTools): JsonObject {
  return tools.media === undefined ? {} : mediaContent(request, tools.media);
}

const builders: Record<string, ContentBuilder> = {
  text: textContent,
  image: mediaMember,
  video: mediaMember,
  audio: mediaMember,
  document: mediaMember,
  sticker: mediaMember,
  location: locationContent,
  contacts: contactsContent,
  interactive: (request, tools) => ({
    interactive: interactiveContent(request),
    context: answerContext(request, tools),
  }),
  button: buttonContent,
  reaction: reactionContent,
  order: cartContent,
  system: systemContent,
  request_welcome: () => ({}),
  unsupported: unsupportedContent,
  edit: editContent,
  revoke: revokeContent,
};

/**
 * The type-specific members of an inbound message. A type that is not known here becomes a message of
 * a kind that the platform might add one day: it has a member of its own name.
 */
export function messageContent(request: InboundRequest, tools: ContentTools): JsonObject {
  const build = Object.hasOwn(builders, request.type) ? builders[request.type] : undefined;
  const content = build?.(request, tools) ?? { [request.type]: { note: 'a type of the future' } };
  const member = content[request.type];
  if (
    request.fields === undefined ||
    typeof member !== 'object' ||
    member === null ||
    Array.isArray(member)
  ) {
    return content;
  }
  return { ...content, [request.type]: { ...member, ...request.fields } };
}

const DEFAULT_FLOW_ANSWER = JSON.stringify({
  flow_token: 'order-7781',
  rating: '4',
  comment: 'Great — thanks',
});

function buttonReply(request: InboundRequest): JsonObject {
  return { id: request.choiceId ?? 'confirm-button', title: request.title ?? 'Confirm' };
}

function listReply(request: InboundRequest): JsonObject {
  return {
    id: request.choiceId ?? 'priority_express',
    title: request.title ?? 'Priority Express',
    description: request.description ?? 'Next day to 2 days',
  };
}

function flowReply(request: InboundRequest): JsonObject {
  return {
    name: request.title ?? 'flow',
    body: request.body ?? 'Sent',
    response_json: request.responseJson ?? DEFAULT_FLOW_ANSWER,
  };
}

/** The `interactive` member: a tapped button, a chosen row, a finished flow, or an empty unknown kind. */
function interactiveContent(request: InboundRequest): JsonObject {
  const kind = request.interactiveType ?? 'button_reply';
  switch (kind) {
    case 'button_reply':
      return { type: kind, button_reply: buttonReply(request) };
    case 'list_reply':
      return { type: kind, list_reply: listReply(request) };
    case 'nfm_reply':
      return { type: kind, nfm_reply: flowReply(request) };
    default:
      return { type: kind, [kind]: {} };
  }
}
