import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { listPhoneNumbers } from '../../../features/accounts/accounts.ts';
import { findTemplate } from '../../../features/accounts/templates.ts';
import { sendProblem, sendWarnings } from '../../../features/messages/send/check-send.ts';
import { templateProblem } from '../../../features/messages/send/check-template.ts';
import {
  findIdempotencyKey,
  holdIdempotencyKey,
  type IdempotencyKey,
  type KnownKey,
  type SendResponse,
  saveIdempotentResponse,
} from '../../../features/messages/send/idempotency-keys.ts';
import { findMediaUploads } from '../../../features/messages/send/media-uploads.ts';
import { type MediaUse, mediaUsesOf } from '../../../features/messages/send/message-content.ts';
import { CategoryNeeded } from '../../../features/messages/send/opted-out.ts';
import {
  findSendProgress,
  type SendPath,
  type SendProgress,
} from '../../../features/messages/send/outbound-messages.ts';
import { isOutcome } from '../../../features/messages/send/outcome-waiter.ts';
import { HOLD_MS, queueMessage, type Sender } from '../../../features/messages/send/queue-message.ts';
import { SendBody, type SendRequest } from '../../../features/messages/send/send-request.ts';
import { sendMessageTask } from '../../../features/messages/send/send-task.ts';
import type { FindTemplates } from '../../../features/messages/send/template-categories.ts';
import { messageOf, typeOf } from '../../../features/messages/send/upstream-payload.ts';
import { membersOf, textOf } from '../../../platform/json/json-members.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { ApiError, invalidParameter } from '../../errors/api-error.ts';
import type { ExternalContext } from '../../external/external-app.ts';
import { sendJsonText } from '../../external/schema-kit.ts';
import { callUpstream } from '../../external/upstream-calls.ts';
import { type Account, accountOf } from '../../keys/api-key-auth.ts';
import { restOperation } from '../../operations/operation.ts';
import { missingBody, validatorCompiler } from '../../plugins/validation.ts';
import { SentMessage, sendResponse } from './send-response.ts';

const OPERATION = 'sendMessage';

/** Templates with carousels and lists of products are large. */
const BODY_LIMIT_BYTES = 256 * 1024;

/** The forms of the body are distinguished by hand, so that an error names the one member that is wrong. */
const sendValidator: typeof validatorCompiler = (route) => {
  if (route.httpPart !== 'body') return validatorCompiler(route);
  return (value: unknown) => {
    if ((value ?? null) === null) return { error: missingBody() };
    const problem = sendProblem(value);
    if (problem === null) return { value };
    return { error: invalidParameter(problem.param, problem.message) };
  };
};

type Respond = (messageId: string, progress: SendProgress) => SendResponse;

export type SendCall = {
  account: Sender & Pick<Account, 'tenantId'>;
  body: SendRequest;
  key: IdempotencyKey | null;
  respond: Respond;
  upstreamPath?: SendPath;
};

type Responded = { response: SendResponse; replayed: boolean };

/** Sends a message once, or repeats the response to it. Throws ApiError. */
export async function respondToSend(context: ExternalContext, call: SendCall): Promise<Responded> {
  const { database, sends } = context;
  const { account, body, key } = call;
  const { wabaId } = account;
  const known = key === null ? null : await findIdempotencyKey(database, wabaId, key);
  if (key !== null && known !== null) return await repeat(context, call, key, known);
  const numbers = await listPhoneNumbers(database, wabaId);
  if (!numbers.some(({ phoneNumberId }) => phoneNumberId === body.phoneNumberId)) {
    throw new ApiError('unknown_phone_number', { param: 'phoneNumberId' });
  }
  await checkMedia(database, wabaId, body);
  const category = await checkTemplate(database, wabaId, body);
  const messageId = await queueKnown(context, call, category);
  // The key was taken between our look and our attempt to take it.
  if (messageId === null) return await respondToSend(context, call);
  void sends.start({ ...sendMessageTask(wabaId, messageId), tenantId: account.tenantId });
  return { response: await finalResponse(context, call, messageId), replayed: false };
}

/** A customer who wants no marketing makes the category of a template count: it is looked up, and the message tried again. */
async function queueKnown(
  context: ExternalContext,
  call: SendCall,
  known: string | undefined,
): Promise<string | null> {
  const { account, body } = call;
  const queue = async (category?: string | null) =>
    await queueMessage(context.database, account, body, {
      ...call,
      ...(category !== undefined && { category }),
    });
  try {
    return await queue(known);
  } catch (error) {
    if (!(error instanceof CategoryNeeded)) throw error;
    const { wabaId } = account;
    const find: FindTemplates = async (name) =>
      await callUpstream(context, wabaId, (client, token) =>
        client.listMessageTemplates(wabaId, { filter: { name }, limit: 100, after: null, token }),
      );
    return await queue(await context.sends.categories.categoryOf(wabaId, body.template, find));
  }
}

/** Waits for the outcome; its response is the response to all repetitions. */
async function finalResponse(
  { database, sends }: ExternalContext,
  { account: { wabaId }, key, respond }: SendCall,
  messageId: string,
): Promise<SendResponse> {
  const progress = await sends.outcomes.wait(wabaId, messageId);
  const response = respond(messageId, progress);
  return key === null ? response : await saveIdempotentResponse(database, wabaId, key, response);
}

const RETRY_AFTER_SECONDS = '1';

/**
 * A request that came before: its response once more; its outcome, when that is known although the process that should
 * have responded is gone; 409 while it is under way.
 */
async function repeat(
  context: ExternalContext,
  call: SendCall,
  key: IdempotencyKey,
  known: KnownKey,
): Promise<Responded> {
  const { database } = context;
  const { wabaId } = call.account;
  if (!known.sameRequest) throw new ApiError('idempotency_key_reused', { param: 'Idempotency-Key' });
  if (known.response !== null) return { response: known.response, replayed: true };
  const progress = await findSendProgress(database, wabaId, known.messageId);
  const isAbandoned = known.heldMs === 0 && (await holdIdempotencyKey(database, wabaId, key, HOLD_MS));
  if (isAbandoned || (progress !== null && isOutcome(progress))) {
    return { response: await finalResponse(context, call, known.messageId), replayed: true };
  }
  throw new ApiError('idempotency_key_in_flight', { headers: { 'retry-after': RETRY_AFTER_SECONDS } });
}

const HEADER = 'Idempotency-Key';
const PRINTABLE = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/;

/**
 * The Idempotency-Key of a request, bound to its body; null without one. Throws ApiError 400 for one that is not 1 to
 * 255 visible ASCII characters.
 */
export function idempotencyKeyOf(request: FastifyRequest, operation: string): IdempotencyKey | null {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key !== 'string' || !PRINTABLE.test(key)) {
    throw invalidParameter(HEADER, 'The header must be 1 to 255 visible ASCII characters.');
  }
  const fingerprint = createHash('sha256').update(JSON.stringify(request.body)).digest();
  return { operation, key, fingerprint };
}

/** Throws ApiError 422, which names the member. */
async function checkMedia(database: Database, wabaId: string, request: SendRequest): Promise<void> {
  const uses = mediaUsesOf(messageOf(request));
  if (uses.length === 0) return;
  const uuids = new Set(uses.flatMap(({ uuid }) => uuid ?? []));
  const found = await findMediaUploads(database, wabaId, [...uuids]);
  const files = new Map(found.map((file) => [file.uuid, file]));
  for (const use of uses) checkUse(use, files.get(use.uuid ?? ''));
}

/**
 * The category of the template of a message, where it is known. Throws ApiError 422 for what upstream would refuse; a template that is not known is
 * for upstream to judge.
 */
async function checkTemplate(
  database: Database,
  wabaId: string,
  request: SendRequest,
): Promise<string | undefined> {
  if (typeOf(request) !== 'template') return undefined;
  const { name, language } = membersOf(request.template);
  const named = { name: textOf(name), language: textOf(membersOf(language).code) };
  const template = await findTemplate(database, wabaId, named);
  if (template === null) return undefined;
  const problem = templateProblem(template, request.template);
  if (problem === null) return template.category ?? undefined;
  const { code, param, message } = problem;
  throw new ApiError(code, { param, message });
}

function checkUse(
  { param, kind }: MediaUse,
  file: { mediaType: string; mimeType: string; isExpired: boolean } | undefined,
): void {
  if (file === undefined) throw new ApiError('unknown_media', { param });
  if (file.isExpired) throw new ApiError('media_expired', { param });
  if (file.mediaType === kind) return;
  const message = `The file is of type ${file.mediaType} (${file.mimeType}) and cannot be sent as ${kind}.`;
  throw new ApiError('wrong_media_type', { param, message });
}

const FROM = { phoneNumberId: '800000000000111', to: '+12025550143' };

const requests = {
  text: { ...FROM, type: 'text', text: { body: 'Your order is ready.' } },
  reply: {
    ...FROM,
    type: 'text',
    context: { message_id: 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUZFOERGMUE1QTE5ODA0OTNDQQA=' },
    text: { body: 'Yes, in blue too.' },
  },
  image: { ...FROM, type: 'image', image: { link: 'https://shop.example/mug.jpg', caption: 'New' } },
  template: {
    ...FROM,
    type: 'template',
    template: {
      name: 'order_ready',
      language: { code: 'en_US' },
      components: [{ type: 'body', parameters: [{ type: 'text', text: 'Asha' }] }],
    },
  },
  buttons: {
    ...FROM,
    type: 'interactive',
    interactive: {
      type: 'button',
      body: { text: 'Shall we deliver today?' },
      action: {
        buttons: [
          { type: 'reply', reply: { id: 'yes', title: 'Yes' } },
          { type: 'reply', reply: { id: 'no', title: 'No' } },
        ],
      },
    },
  },
  'order status': {
    ...FROM,
    type: 'interactive',
    interactive: {
      type: 'order_status',
      body: { text: 'On its way' },
      action: {
        name: 'review_order',
        parameters: { reference_id: 'ord-1001', order: { status: 'shipped' } },
      },
    },
  },
  'Direct Send': {
    ...FROM,
    type: 'text',
    category: 'utility',
    ttl_seconds: 600,
    text: { body: 'Your parcel is at the door.' },
  },
  'business-scoped id': {
    phoneNumberId: '800000000000111',
    recipient: 'US.13491208655302741918',
    type: 'text',
    text: { body: 'Hello' },
  },
};

export const sendMessage = restOperation({
  id: OPERATION,
  method: 'POST',
  path: '/api/external/messages',
  scope: 'send',
  summary: 'Send a message',
  description:
    'The body is the upstream platform’s own message object with `phoneNumberId` in front, and `to` or `recipient`; with both, upstream uses `to`. The response waits up to about 10 seconds for upstream. Upstream checks its own limits. A type or a member that the service does not know is passed on, with an entry in `warnings`: also one next to the content, such as `category` of Direct Send.',
  tag: 'Messages',
  idempotent: true,
  errors: [
    'unknown_phone_number',
    'unknown_media',
    'media_expired',
    'wrong_media_type',
    'idempotency_key_in_flight',
    'idempotency_key_reused',
    'upstream_refused',
    'message_not_sent',
    'recipient_not_open',
    'recipient_opted_out',
    'template_paused',
    'template_disabled',
    'template_variables_wrong',
    'message_limit_reached',
  ],
  requests,
  body: SendBody,
  answers: {
    200: { schema: SentMessage, description: 'Upstream has the message.', headers: ['Idempotent-Replayed'] },
    202: {
      schema: SentMessage,
      description:
        '`queued`: the message is sent automatically. `unknown`: it may have reached upstream, and is not sent again.',
      example: { metaMessageId: null, state: 'queued' },
      headers: ['Idempotent-Replayed'],
    },
  },
  route: { validatorCompiler: sendValidator, bodyLimit: BODY_LIMIT_BYTES },
  run: async (call) => {
    const { request, reply, publicUrl } = call;
    const key = idempotencyKeyOf(request, OPERATION);
    const body = request.body as SendRequest;
    const warnings = sendWarnings(body);
    const respond: Respond = (messageId, progress) =>
      sendResponse(messageId, progress, { publicUrl, requestId: request.id, warnings });
    const sent = { account: accountOf(request), body, key, respond };
    const { response, replayed } = await respondToSend(call, sent);
    if (replayed) reply.header('idempotent-replayed', 'true');
    // Already serialized: a repeated response is the first one, byte for byte.
    return sendJsonText(reply.code(response.status), response.body);
  },
});
