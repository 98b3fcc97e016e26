import { cartContent } from './cart-content.ts';
import type { InboundRequest } from './inbound-request.ts';
import { interactiveContent } from './interactive-content.ts';
import { type MediaReference, mediaContent } from './media-content.ts';
import { systemContent, unsupportedContent } from './notice-contents.ts';
import type { JsonObject } from './webhook-body.ts';

/** What builders need besides the request. */
export type ContentTools = {
  /** The phone number of the customer, digits; a stand-in number for customers without one. */
  customer: string;
  customerName: string;
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
