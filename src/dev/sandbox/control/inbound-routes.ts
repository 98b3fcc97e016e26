import type { FastifyInstance } from 'fastify';
import { DEMO_INDIA_PHONE_NUMBER_ID, DEMO_PHONE_NUMBER_ID, type PhoneNumber } from '../demo-phone-numbers.ts';
import { type BuiltBody, buildInboundMessage } from '../payloads/inbound-message.ts';
import { type InboundRequest, inboundRequestProperties } from '../payloads/inbound-request.ts';
import { isMediaType, type MediaReference } from '../payloads/media-content.ts';
import {
  buildMessageStatus,
  type StatusRequest,
  statusRequestProperties,
} from '../payloads/message-status.ts';
import {
  buildPaymentStatus,
  type PaymentRequest,
  paymentRequestProperties,
} from '../payloads/payment-status.ts';
import { createRandomSource } from '../payloads/random-source.ts';
import { serializeWebhookBody } from '../payloads/webhook-body.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import type { WebhookAnswer } from '../upstream-webhook-sender.ts';
import { ControlError } from './control-error.ts';
import { recordInbound } from './recorded-inbound.ts';
import { sendToIngress } from './webhook-routes.ts';

type TypedRequest =
  | ({ type: 'status' } & StatusRequest)
  | ({ type: 'payment' } & PaymentRequest)
  | InboundRequest;

function schemaOf(required: string[], properties: object): object {
  return { type: 'object', additionalProperties: false, required, properties };
}

const bodySchema = {
  type: 'object',
  required: ['type'],
  if: { properties: { type: { const: 'status' } } },
  // biome-ignore lint/suspicious/noThenProperty: `then` is the name of a JSON schema keyword.
  then: schemaOf(['type', 'id', 'status'], statusRequestProperties),
  else: {
    if: { properties: { type: { const: 'payment' } } },
    // biome-ignore lint/suspicious/noThenProperty: `then` is the name of a JSON schema keyword.
    then: schemaOf(['type', 'status'], paymentRequestProperties),
    else: schemaOf(['type'], inboundRequestProperties),
  },
};

function isStatus(request: TypedRequest): request is { type: 'status' } & StatusRequest {
  return request.type === 'status';
}

function isPayment(request: TypedRequest): request is { type: 'payment' } & PaymentRequest {
  return request.type === 'payment';
}

function phoneOf(context: UpstreamContext, request: TypedRequest): PhoneNumber {
  const isIndian = request.type === 'payment' || request.type === 'order';
  const id = request.phoneNumberId ?? (isIndian ? DEMO_INDIA_PHONE_NUMBER_ID : DEMO_PHONE_NUMBER_ID);
  const phone = context.phones.find(id);
  if (phone === undefined) {
    throw new ControlError(
      404,
      'unknown_phone_number',
      `No phone number ${id}; add it with POST /sandbox/phone-numbers.`,
    );
  }
  return phone;
}

/** The media object that a message refers to: the named one, or a fixture of its own. */
function mediaOf(context: UpstreamContext, request: InboundRequest): MediaReference | undefined {
  if (!isMediaType(request.type) && request.mediaId === undefined) {
    return undefined;
  }
  const digits = createRandomSource(request.seed && `media:${request.seed}`).bytes(6);
  const id = request.mediaId ?? `60${String(digits.readUIntBE(0, 6) % 10 ** 13).padStart(13, '0')}`;
  const media = context.media.find(id);
  if (media === undefined) {
    throw new ControlError(404, 'unknown_media', `No media ${id}; store it with POST /sandbox/media.`);
  }
  const { mimeType, sha256Base64, filename } = media;
  return {
    id,
    mimeType,
    sha256Base64,
    ...(filename === undefined ? {} : { filename }),
    ...(request.withUrl === false ? {} : { url: context.mediaUrls.create(id, { source: 'webhook' }) }),
  };
}

function build(context: UpstreamContext, request: TypedRequest, phone: PhoneNumber): BuiltBody {
  if (isStatus(request)) {
    return buildMessageStatus(request, phone);
  }
  return isPayment(request)
    ? buildPaymentStatus(request, phone)
    : buildInboundMessage(request, phone, mediaOf(context, request));
}

/** Sends a body, and shows in the chat what became of it. */
async function reported(
  context: UpstreamContext,
  request: TypedRequest,
  phone: PhoneNumber,
  built: BuiltBody,
  bytes: Buffer,
): Promise<WebhookAnswer> {
  if (isStatus(request)) {
    context.chat.note(request.id, request.status);
    return await sendToIngress(context, bytes);
  }
  const entry = recordInbound(context, phone, built);
  const noteState = (state: string) => entry.states.push({ state, at: new Date().toISOString() });
  try {
    const answer = await sendToIngress(context, bytes);
    noteState(answer.status === 200 ? 'sent' : 'refused');
    return answer;
  } catch (error) {
    noteState('refused');
    throw error;
  }
}

const phoneNumberSchema = schemaOf(['wabaId', 'phoneNumberId', 'displayPhoneNumber', 'verifiedName'], {
  wabaId: { type: 'string', pattern: '^\\d{1,32}$' },
  phoneNumberId: { type: 'string', pattern: '^\\d{1,32}$' },
  displayPhoneNumber: { type: 'string', minLength: 1, maxLength: 50 },
  verifiedName: { type: 'string', maxLength: 200 },
  qualityRating: { type: 'string', maxLength: 50 },
  codeVerificationStatus: { type: 'string', maxLength: 50 },
});

/** /sandbox/inbound builds and sends a body of any type; /sandbox/phone-numbers adds a number. */
export function registerInboundRoutes(app: FastifyInstance, context: UpstreamContext): void {
  app.post<{ Body: TypedRequest }>('/sandbox/inbound', { schema: { body: bodySchema } }, async (request) => {
    const phone = phoneOf(context, request.body);
    const built = build(context, request.body, phone);
    const bytes = serializeWebhookBody(built.body);
    const answer = await reported(context, request.body, phone, built, bytes);
    return { id: built.id, ...answer, sizeBytes: bytes.length, body: built.body };
  });
  app.post<{ Body: PhoneNumber }>(
    '/sandbox/phone-numbers',
    { schema: { body: phoneNumberSchema } },
    async (request) => {
      context.phones.add(request.body);
      return request.body;
    },
  );
}
