import { createServer, type IncomingMessage, type Server } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { Client } from '@temporalio/client';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import type { customer, ReceivedEvent } from './await-event.ts';

type Options = { client: Client; taskQueue: string; secret: string };

/**
 * Turns webhooks into signals. It responds with 204 once Temporal has the signal, and with 500 if it does not: then the
 * webhook comes again, and later ones of its key wait for it. So no event is lost, and each conversation stays in order.
 */
export function makeReceiver(options: Options): Server {
  return createServer((request, response) => {
    receive(request, options).then(
      () => response.writeHead(204).end(),
      (error: unknown) => response.writeHead(error instanceof WebhookVerificationError ? 401 : 500).end(),
    );
  });
}

async function receive(request: IncomingMessage, { client, taskQueue, secret }: Options): Promise<void> {
  const body = await buffer(request);
  const headers = request.headers as Record<string, string>;
  const event = new Webhook(secret).verify(body, headers) as WebhookBody;
  const message = event.data.message;
  if (event.eventType !== 'message' || message === undefined) return;
  const received: ReceivedEvent = {
    webhookId: headers['webhook-id'] ?? '',
    deliveryId: headers['x-service-delivery-id'] ?? '',
    eventType: event.eventType,
    eventId: event.eventId,
    text: message.text?.body ?? '',
  };
  await client.workflow.signalWithStart<typeof customer, [ReceivedEvent]>('customer', {
    workflowId: `customer/${event.wabaId}/${message.from}`,
    taskQueue,
    signal: 'eventReceived',
    signalArgs: [received],
  });
}

type WebhookBody = {
  eventType: string;
  eventId: string;
  wabaId: string;
  data: { message?: { from: string; text?: { body: string } } };
};
