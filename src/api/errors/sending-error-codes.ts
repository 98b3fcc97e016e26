import { SEND_REFUSALS } from '../../features/messages/send/send-refusals.ts';

/** Error codes of what is sent: templates, conversations, and repeated requests. */
export const SENDING_ERROR_CODES = {
  template_paused: {
    status: 422,
    message: 'The template is paused.',
    advice:
      'Upstream paused it for its quality. Nothing was sent. Wait until upstream releases it, or edit it; GET /api/external/message-templates?refresh=true copies its present state.',
  },
  template_disabled: {
    status: 422,
    message: 'The template is disabled.',
    advice:
      'Upstream disabled it for its quality. Nothing was sent. Use another template; GET /api/external/message-templates?refresh=true copies its present state.',
  },
  template_variables_wrong: {
    status: 422,
    message: 'The variables differ from those of the template.',
    advice:
      'The message names the variable that is missing or surplus. Nothing was sent. GET /api/external/message-templates?refresh=true copies the template as it is now.',
  },
  message_not_scheduled: {
    status: 409,
    message: 'The message is not scheduled, or no longer.',
    advice:
      'Its sending has begun, or it has failed or was cancelled: GET /api/external/messages/{id} gives its state. A sent message cannot be taken back.',
  },
  too_many_scheduled: {
    status: 429,
    message: 'The WABA has too many scheduled messages.',
    advice: 'Nothing was stored. Cancel scheduled messages, or wait until some are sent.',
  },
  too_many_broadcasts: {
    status: 409,
    message: 'The WABA has too many broadcasts.',
    advice:
      'At most 5 run or are paused, and 100 have not ended, drafts included. Wait for one of them, or cancel it.',
  },
  broadcast_started: {
    status: 409,
    message: 'The broadcast was started: it cannot be changed any more.',
    advice: 'Add all recipients before the start. Resume a paused broadcast instead of starting it again.',
  },
  broadcast_not_started: {
    status: 409,
    message: 'The broadcast was not started.',
    advice: 'Start it first.',
  },
  broadcast_finished: {
    status: 409,
    message: 'The broadcast has ended.',
    advice: 'Create another one.',
  },
  broadcast_empty: {
    status: 422,
    message: 'The broadcast has no recipients.',
    advice: 'Add recipients: POST /api/external/broadcasts/{id}/recipients.',
  },
  broadcast_too_large: {
    status: 422,
    message: 'A broadcast has at most 100,000 recipients.',
    advice: 'No recipient of the request was added. Create another broadcast for the rest.',
  },
  conversation_of_group: {
    status: 422,
    message: 'The conversation of a group has no owner among several responders.',
    advice: 'Use the id of a conversation with one customer.',
  },
  message_not_inbound: {
    status: 422,
    message: 'Only a message of a customer can be marked as read.',
    advice: 'Use the serviceMessageId of a message whose "direction" is "inbound".',
  },
  payment_configuration_required: {
    status: 422,
    message: 'The payment configuration is unknown.',
    advice:
      'The order message was not sent through this service, or names no configuration: give its name in the parameter "paymentConfiguration".',
  },
  idempotency_key_in_flight: {
    status: 409,
    message: SEND_REFUSALS.idempotency_key_in_flight,
    advice: 'Repeat the request after the time in the header Retry-After; nothing is done twice.',
  },
  idempotency_key_reused: {
    status: 422,
    message: SEND_REFUSALS.idempotency_key_reused,
    advice: 'Use a new key for each request, and repeat a request with the same body.',
  },
} as const;
