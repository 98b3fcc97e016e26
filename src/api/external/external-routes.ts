import type { FastifyInstance } from 'fastify';
import { requireApiKey } from '../plugins/api-key-auth.ts';
import { accountIdentity } from './account-identity.ts';
import { connectionTest } from './connection-test.ts';
import { conversationMessages } from './conversation-messages.ts';
import { conversations } from './conversations.ts';
import { getEvent } from './events/get-event.ts';
import { eventList } from './events/list-events.ts';
import { replayEvent } from './events/replay-event.ts';
import type { ExternalApp, ExternalContext } from './external-app.ts';
import { messageDetail } from './message-detail.ts';
import { messageMedia } from './message-media.ts';
import { ownKey } from './own-key.ts';
import { getReplay, listReplays, switchReplays } from './replays/replays.ts';
import { startReplayOfMany } from './replays/start-replay.ts';
import { sendMessageRoute } from './send-message.ts';
import { webhookRoutes } from './webhooks/webhook-routes.ts';

const HANDLER_TIMEOUT_MS = 15_000;

/** The External API: everything but the connection test needs an API key. */
export async function externalRoutes(scope: FastifyInstance, context: ExternalContext): Promise<void> {
  scope.addHook('onRoute', (route) => {
    route.handlerTimeout = HANDLER_TIMEOUT_MS;
  });
  scope.addHook('onClose', async () => {
    await Promise.all([context.sends.starter.close(), context.sends.outcomes.close()]);
  });
  connectionTest(scope);
  await scope.register(async (secured: ExternalApp) => {
    requireApiKey(secured as unknown as FastifyInstance, context.database);
    accountIdentity(secured, context);
    conversations(secured, context);
    conversationMessages(secured, context);
    messageMedia(secured, context);
    eventList(secured, context);
    getEvent(secured, context);
    replayEvent(secured, context);
    startReplayOfMany(secured, context);
    listReplays(secured, context);
    getReplay(secured, context);
    switchReplays(secured, context);
    webhookRoutes(secured, context);
    ownKey(secured, context);
    messageDetail(secured, context);
    sendMessageRoute(secured, context);
  });
}
