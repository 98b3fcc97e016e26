import type { FastifyInstance } from 'fastify';
import { requireApiKey } from '../plugins/api-key-auth.ts';
import { accountIdentity } from './account-identity.ts';
import { connectionTest } from './connection-test.ts';
import { conversationMessages } from './conversation-messages.ts';
import { conversations } from './conversations.ts';
import type { ExternalApp, ExternalContext } from './external-app.ts';
import { messageMedia } from './message-media.ts';

const HANDLER_TIMEOUT_MS = 15_000;

/** The External API: everything but the connection test needs an API key. */
export async function externalRoutes(scope: FastifyInstance, context: ExternalContext): Promise<void> {
  scope.addHook('onRoute', (route) => {
    route.handlerTimeout = HANDLER_TIMEOUT_MS;
  });
  connectionTest(scope);
  await scope.register(async (secured: ExternalApp) => {
    requireApiKey(secured as unknown as FastifyInstance, context.database);
    accountIdentity(secured, context);
    conversations(secured, context);
    conversationMessages(secured, context);
    messageMedia(secured, context);
  });
}
