import type { FastifyInstance } from 'fastify';
import { noteStatus } from '../bill.ts';
import type { ChatEntry } from '../chat-log.ts';
import { DEMO_CUSTOMERS, type DemoCustomer, type PhoneNumber } from '../demo-accounts.ts';
import { type FaultRequest, faultProblem, faultRequestSchema } from '../fault-register.ts';
import { rejectForeignPages } from '../loopback-only.ts';
import { buildFieldChange, type FieldRequest, fieldRequestProperties } from '../payloads/field-change.ts';
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
import { createRandomSource } from '../payloads/sources.ts';
import { type JsonObject, serializeWebhookBody } from '../payloads/webhook-body.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import type { SignatureForm, WebhookAnswer } from '../upstream-webhook-sender.ts';
import { ControlError, phoneOf, sendToIngress } from './control-error.ts';
import { registerGroupRoutes } from './group-routes.ts';
import { registerRoutingRoutes } from './routing-routes.ts';

/** The part of the server with which tests and the command line steer it. */
export async function controlApi(app: FastifyInstance, context: UpstreamContext): Promise<void> {
  rejectForeignPages(app);
  app.setErrorHandler<Error & { statusCode?: number; code?: string }>((error, _request, reply) => {
    const statusCode = error.statusCode ?? 500;
    const code = statusCode === 500 ? 'internal' : (error.code ?? 'invalid_request');
    return reply.code(statusCode).send({ error: { code, message: error.message } });
  });
  registerFaultRoutes(app, context);
  registerWebhookRoutes(app, context);
  registerInboundRoutes(app, context);
  registerChatRoutes(app, context);
  registerGroupRoutes(app, context);
  registerRoutingRoutes(app, context);
  await app.register((scope) => mediaRoutes(scope, context));
}

/** What goes wrong (/sandbox/faults), what was asked (requests), and what was taken (sent, receipts). */
function registerFaultRoutes(app: FastifyInstance, context: UpstreamContext): void {
  app.post<{ Body: FaultRequest }>(
    '/sandbox/faults',
    { schema: { body: faultRequestSchema } },
    async (request) => {
      const problem = faultProblem(request.body);
      if (problem !== undefined) {
        throw new ControlError(400, 'impossible_fault', problem);
      }
      return context.faults.add(request.body);
    },
  );
  app.get('/sandbox/faults', async () => ({ data: context.faults.list() }));
  app.delete('/sandbox/faults', async () => ({ cleared: context.faults.clear() }));
  app.get('/sandbox/requests', async () => ({ data: context.requests.list() }));
  app.delete('/sandbox/requests', async () => ({ cleared: context.requests.clear() }));
  app.get('/sandbox/sent', async () => ({ data: context.sent.list() }));
  app.delete('/sandbox/sent', async () => ({ cleared: context.sent.clear() }));
  app.get('/sandbox/receipts', async () => ({ data: context.receipts.list() }));
  app.delete('/sandbox/receipts', async () => ({ cleared: context.receipts.clear() }));
}

/** The one change of a body that was built here. */
type BuiltValue = {
  contacts?: { profile?: { name?: string } }[];
  messages?: JsonObject[];
  statuses?: JsonObject[];
};

function changeOf({ body }: BuiltBody): BuiltValue {
  const [entry] = body.entry as { changes: { value: BuiltValue }[] }[];
  return entry?.changes[0]?.value ?? {};
}

/** Puts what a customer did into the chat, before the platform reports it: a message or a payment. */
function recordInbound(context: UpstreamContext, phone: PhoneNumber, built: BuiltBody): ChatEntry {
  const { contacts, messages, statuses } = changeOf(built);
  const message = messages?.[0] ?? statuses?.[0] ?? {};
  const customer = message.group_id ?? message.from ?? message.from_user_id ?? message.recipient_id;
  return context.chat.add(
    {
      side: 'customer',
      id: built.id,
      phoneNumberId: phone.phoneNumberId,
      customer: String(customer ?? ''),
      customerName: contacts?.[0]?.profile?.name ?? null,
      message,
    },
    'sending',
  );
}

const MAX_ENTRIES = 500;
const MAX_CUSTOMERS = 20;

const querySchema = {
  type: 'object',
  required: ['wabaId'],
  properties: {
    wabaId: { type: 'string', maxLength: 32 },
    limit: { type: 'string', pattern: '^[1-9]\\d{0,2}$' },
  },
} as const;

type ChatRoute = { Querystring: { wabaId: string; limit?: string } };

function phoneNumberIdsOf(context: UpstreamContext, wabaId: string): Set<string> {
  return new Set(context.phones.ofWaba(wabaId).map((phone) => phone.phoneNumberId));
}

/** The demo customers, and after them others who have a chat. */
function customersOf(context: UpstreamContext, wabaId: string): DemoCustomer[] {
  const byId = new Map(DEMO_CUSTOMERS.map((customer) => [customer.waId, customer]));
  for (const entry of context.chat.newest(phoneNumberIdsOf(context, wabaId), MAX_ENTRIES)) {
    if (!byId.has(entry.customer) && /^\d{1,32}$/.test(entry.customer) && byId.size < MAX_CUSTOMERS) {
      byId.set(entry.customer, { waId: entry.customer, name: entry.customerName ?? entry.customer });
    }
  }
  return [...byId.values()];
}

/** /sandbox/chat: the newest messages of an account's chats, both sides; /sandbox/customers: who can be played. */
function registerChatRoutes(app: FastifyInstance, context: UpstreamContext): void {
  app.get<ChatRoute>('/sandbox/chat', { schema: { querystring: querySchema } }, async (request) => {
    const limit = Math.min(Number(request.query.limit ?? MAX_ENTRIES), MAX_ENTRIES);
    return { data: context.chat.newest(phoneNumberIdsOf(context, request.query.wabaId), limit) };
  });
  app.get<ChatRoute>('/sandbox/customers', { schema: { querystring: querySchema } }, async (request) => ({
    data: customersOf(context, request.query.wabaId),
  }));
}

const MAX_MEDIA_BYTES = 110 * 1024 * 1024;

/** What a page that shows the bytes cannot take for a page of its own. */
const HARMLESS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "sandbox; default-src 'none'",
} as const;

type MediaRoute = { Body: unknown; Querystring: { filename?: string } };

/** POST /sandbox/media?filename= keeps the raw bytes of the body, of the type in its header; GET hands them out. */
async function mediaRoutes(app: FastifyInstance, context: UpstreamContext): Promise<void> {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: MAX_MEDIA_BYTES }, (_request, body, done) =>
    done(null, body),
  );
  app.get<{ Params: { id: string } }>('/sandbox/media/:id', async (request, reply) => {
    const media = context.media.find(request.params.id);
    if (media === undefined) {
      throw new ControlError(404, 'unknown_media', `No media ${request.params.id}.`);
    }
    return reply.type(media.mimeType).headers(HARMLESS).send(media.bytes);
  });
  app.post<MediaRoute>('/sandbox/media', { bodyLimit: MAX_MEDIA_BYTES }, async (request) => {
    const { body, headers, query } = request;
    if (!Buffer.isBuffer(body) || body.length === 0) {
      throw new ControlError(
        400,
        'empty_media',
        'Send the bytes of the media as the body, with a content type.',
      );
    }
    const media = context.media.put({
      bytes: body,
      mimeType: headers['content-type'] ?? 'application/octet-stream',
      ...(query.filename === undefined ? {} : { filename: query.filename }),
    });
    return {
      id: media.id,
      sha256: media.sha256Base64,
      sizeBytes: media.bytes.length,
      mimeType: media.mimeType,
    };
  });
}

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
    noteStatus(context.bill, request, phone);
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
    noteState(answer.status === 200 ? 'delivered' : 'refused');
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
  throughput: { type: 'string', maxLength: 50 },
  isOnBizApp: { type: 'boolean' },
});

/** /sandbox/inbound and /sandbox/fields build and send a body of any type; /sandbox/phone-numbers adds a number. */
function registerInboundRoutes(app: FastifyInstance, context: UpstreamContext): void {
  app.post<{ Body: TypedRequest }>('/sandbox/inbound', { schema: { body: bodySchema } }, async (request) => {
    const phone = phoneOf(context, request.body);
    const built = build(context, request.body, phone);
    const bytes = serializeWebhookBody(built.body);
    const answer = await reported(context, request.body, phone, built, bytes);
    return { id: built.id, to: phone, ...answer, sizeBytes: bytes.length, body: built.body };
  });
  const fieldSchema = { body: schemaOf(['field'], fieldRequestProperties) };
  app.post<{ Body: FieldRequest }>('/sandbox/fields', { schema: fieldSchema }, async ({ body: request }) => {
    const phone = phoneOf(context, request);
    const body = buildFieldChange(request, phone);
    if (body === null) throw new ControlError(400, 'unknown_field', `Give a value of ${request.field}.`);
    return { to: phone, ...(await sendToIngress(context, serializeWebhookBody(body))), body };
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

type WebhookRequest = { body?: unknown; bodyBase64?: string; signature?: SignatureForm };

const webhookRequestSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    body: {},
    bodyBase64: { type: 'string' },
    signature: { enum: ['valid', 'wrong', 'missing'] },
  },
} as const;

/** The exact bytes to send: base64 and strings as they are, objects as the platform writes them. */
function bytesOf({ body, bodyBase64 }: WebhookRequest): Buffer {
  if (bodyBase64 !== undefined) {
    return Buffer.from(bodyBase64, 'base64');
  }
  if (body === undefined) {
    throw new ControlError(
      400,
      'missing_body',
      'Give the webhook as body (object or exact text) or bodyBase64.',
    );
  }
  return typeof body === 'string' ? Buffer.from(body) : serializeWebhookBody(body);
}

/** /sandbox/webhooks sends given bytes, signed; /sandbox/verify does the subscription handshake. */
function registerWebhookRoutes(app: FastifyInstance, context: UpstreamContext): void {
  app.post<{ Body: WebhookRequest }>(
    '/sandbox/webhooks',
    { schema: { body: webhookRequestSchema } },
    async (request) => {
      const body = bytesOf(request.body);
      return { ...(await sendToIngress(context, body, request.body.signature)), sizeBytes: body.length };
    },
  );
  app.post('/sandbox/verify', async () => {
    const { challenge, ...answer } = await context.sender.verify().catch((error: unknown) => {
      throw new ControlError(502, 'ingress_unreachable', String(error), { cause: error });
    });
    return { ...answer, verified: answer.status === 200 && answer.responseBody === challenge };
  });
}
