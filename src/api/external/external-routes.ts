import type { FastifyInstance } from 'fastify';
import { accountIdentity } from '../accounts/account-identity.ts';
import { connectionTest } from '../accounts/connection-test.ts';
import { usageRoute } from '../accounts/usage.ts';
import { exportOfCustomer, getErasure, listErasures, requestErasure } from '../erasures/erasures.ts';
import { requireApiKey } from '../keys/api-key-auth.ts';
import { ownKey } from '../keys/own-key.ts';
import { conversationMessages } from '../messages/conversation-messages.ts';
import { conversations, getConversation, searchConversations } from '../messages/conversations.ts';
import { messageMedia } from '../messages/get-message-media.ts';
import { markMessageReadRoute } from '../messages/mark-message-read.ts';
import { messageDetail } from '../messages/message-detail.ts';
import { getPayment } from '../messages/payments/get-payment.ts';
import { listTemplates } from '../messages/send/list-templates.ts';
import { sendMessageRoute } from '../messages/send/send-message.ts';
import { mediaRoutes } from '../messages/uploads/media-routes.ts';
import { openApiDocumentRoute } from '../openapi/document-routes.ts';
import { addOperations } from '../operations/operation-route.ts';
import { OPERATIONS } from '../operations/operations.ts';
import { refuseNullBody, refuseWhileClosing, requireStorableValues } from '../plugins/request-hooks.ts';
import { guardBodies } from '../shares/client-shares.ts';
import type { ExternalApp, ExternalContext } from './external-app.ts';

const HANDLER_TIMEOUT_MS = 15_000;

/** Routes that take more say so. */
const BODY_LIMIT_BYTES = 64 * 1024;

const BODY_LIMITS = { maxBytes: 64 * 1024 * 1024, maxBytesPerAddress: 16 * 1024 * 1024 };

/** The External API: everything but the connection test needs an API key. */
export async function externalRoutes(scope: FastifyInstance, context: ExternalContext): Promise<void> {
  scope.addHook('onRoute', (route) => {
    route.handlerTimeout ??= HANDLER_TIMEOUT_MS;
    route.bodyLimit ??= BODY_LIMIT_BYTES;
  });
  scope.addHook('onClose', async () => {
    const { limits, sends, upstream } = context;
    limits.close();
    await Promise.all([sends.outcomes.close(), upstream.close()]);
  });
  refuseWhileClosing(scope);
  guardBodies(scope, BODY_LIMITS);
  refuseNullBody(scope);
  requireStorableValues(scope);
  connectionTest(scope);
  openApiDocumentRoute(scope);
  await scope.register(async (secured: ExternalApp) => {
    requireApiKey(secured as unknown as FastifyInstance, context);
    accountIdentity(secured, context);
    usageRoute(secured, context);
    conversations(secured, context);
    searchConversations(secured, context);
    getConversation(secured, context);
    conversationMessages(secured, context);
    messageMedia(secured, context);
    addOperations(secured, context, OPERATIONS);
    ownKey(secured, context);
    messageDetail(secured, context);
    sendMessageRoute(secured, context);
    markMessageReadRoute(secured, context);
    mediaRoutes(secured, context);
    listTemplates(secured, context);
    getPayment(secured, context);
    requestErasure(secured, context);
    listErasures(secured, context);
    getErasure(secured, context);
    exportOfCustomer(secured, context);
  });
}
