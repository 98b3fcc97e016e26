import { sendProblem, sendWarnings } from '../../../features/messages/send/check-send.ts';
import { readIdempotencyKey } from '../../../features/messages/send/idempotency-keys.ts';
import { type SendCall, sendOnce } from '../../../features/messages/send/send-once.ts';
import { SendBody, type SendRequest } from '../../../features/messages/send/send-request.ts';
import { invalidParameter } from '../../errors/api-error.ts';
import { sendJsonText } from '../../external/schema-kit.ts';
import { accountOf } from '../../keys/api-key-auth.ts';
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
      components: [
        {
          type: 'body',
          parameters: [
            { type: 'text', text: 'Asha' },
            { type: 'text', text: 'ORD-7' },
          ],
        },
      ],
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
  'at a later time': {
    ...FROM,
    type: 'text',
    text: { body: 'Your appointment is tomorrow at 9.' },
    sendAt: '2026-12-01T09:00:00+01:00',
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
    'The body is the upstream platform’s own message object with `phoneNumberId` in front, and `to` or `recipient`; with both, upstream uses `to`. The response waits up to about 10 seconds for upstream. With `sendAt` it is sent at that time and the response comes at once. Upstream checks its own limits. A type or a member that the service does not know is passed on, with an entry in `warnings`: also one next to the content, such as `category` of Direct Send.',
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
    'too_many_scheduled',
  ],
  requests,
  body: SendBody,
  answers: {
    200: { schema: SentMessage, description: 'Upstream has the message.', headers: ['Idempotent-Replayed'] },
    202: {
      schema: SentMessage,
      description:
        '`queued`: the message is sent automatically. `unknown`: it may have reached upstream, and is not sent again. `scheduled`: it is sent at `sendAt`.',
      example: { metaMessageId: null, state: 'queued' },
      headers: ['Idempotent-Replayed'],
    },
  },
  route: { validatorCompiler: sendValidator, bodyLimit: BODY_LIMIT_BYTES },
  run: async (call) => {
    const { request, reply, publicUrl } = call;
    const key = readIdempotencyKey(request, OPERATION);
    const body = request.body as SendRequest;
    const warnings = sendWarnings(body);
    const respond: SendCall['respond'] = (messageId, progress) =>
      sendResponse(messageId, progress, { publicUrl, requestId: request.id, warnings });
    const sent = { account: accountOf(request), body, key, respond };
    const { response, replayed } = await sendOnce(call, sent);
    if (replayed) reply.header('idempotent-replayed', 'true');
    // Already serialized: a repeated response is the first one, byte for byte.
    return sendJsonText(reply.code(response.status), response.body);
  },
});
