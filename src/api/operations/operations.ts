import { IDENTITY_OPERATIONS } from '../accounts/account-identity.ts';
import { getMessageUsage } from '../accounts/message-usage.ts';
import { getUsage } from '../accounts/usage.ts';
import { checkOwnWaba } from '../accounts/waba-check.ts';
import { OPT_OUT_WORDS_OPERATIONS } from '../customers/opt-out-words.ts';
import { OPT_OUT_OPERATIONS } from '../customers/opt-outs.ts';
import { streamEvents } from '../deliveries/event-stream.ts';
import { EVENT_OPERATIONS } from '../deliveries/events.ts';
import { RETRY_OPERATIONS } from '../deliveries/retries.ts';
import { listEndpointAlerts } from '../endpoints/endpoint-alerts.ts';
import { testWebhookEndpoint, webhookEndpointStatistics } from '../endpoints/endpoint-checks.ts';
import { ENDPOINT_OPERATIONS } from '../endpoints/endpoint-operations.ts';
import {
  rotateWebhookEndpointSecret,
  rotateWebhookEndpointSigningKey,
} from '../endpoints/endpoint-secrets.ts';
import { OPERATIONS_URL_OPERATIONS } from '../endpoints/operations-url.ts';
import { ERASURE_OPERATIONS } from '../erasures/erasures.ts';
import { getOwnKey } from '../keys/own-key.ts';
import { BROADCAST_OPERATIONS } from '../messages/broadcasts/broadcasts.ts';
import { listMessages } from '../messages/conversation-messages.ts';
import { getConversation, listAllConversations, searchConversations } from '../messages/conversations.ts';
import { getMessageMedia } from '../messages/get-message-media.ts';
import { markMessageReadOperation } from '../messages/mark-message-read.ts';
import { getMessage } from '../messages/message-detail.ts';
import { getPayment } from '../messages/payments/get-payment.ts';
import { listTemplates } from '../messages/send/list-templates.ts';
import { SCHEDULED_OPERATIONS } from '../messages/send/scheduled-messages.ts';
import { sendMessage } from '../messages/send/send-message.ts';
import { controlThreadOperation } from '../messages/thread-control.ts';
import { MEDIA_OPERATIONS } from '../messages/uploads/media-routes.ts';
import { REPLAY_OPERATIONS } from '../replays/replays.ts';
import { listMessageTemplates } from '../templates/message-templates.ts';
import { uploadTemplateMedia } from '../templates/template-media.ts';
import type { Operation } from './operation.ts';

/** Every operation that needs an API key, in the order of the document. To import it starts nothing. */
export const OPERATIONS: readonly Operation[] = [
  ...IDENTITY_OPERATIONS,
  getUsage,
  getMessageUsage,
  checkOwnWaba,
  listAllConversations,
  searchConversations,
  getConversation,
  controlThreadOperation,
  listMessages,
  getMessageMedia,
  ...EVENT_OPERATIONS,
  streamEvents,
  ...REPLAY_OPERATIONS,
  ...ENDPOINT_OPERATIONS,
  rotateWebhookEndpointSecret,
  rotateWebhookEndpointSigningKey,
  testWebhookEndpoint,
  webhookEndpointStatistics,
  ...OPERATIONS_URL_OPERATIONS,
  listEndpointAlerts,
  ...RETRY_OPERATIONS,
  getOwnKey,
  getMessage,
  sendMessage,
  ...SCHEDULED_OPERATIONS,
  ...BROADCAST_OPERATIONS,
  markMessageReadOperation,
  ...MEDIA_OPERATIONS,
  listTemplates,
  listMessageTemplates,
  uploadTemplateMedia,
  getPayment,
  ...OPT_OUT_OPERATIONS,
  ...OPT_OUT_WORDS_OPERATIONS,
  ...ERASURE_OPERATIONS,
];
