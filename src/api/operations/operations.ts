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
import { REPLAY_OPERATIONS } from '../replays/replays.ts';
import type { Operation } from './operation.ts';

/** Every operation that needs an API key, in the order of the document. To import it starts nothing. */
export const OPERATIONS: readonly Operation[] = [
  ...EVENT_OPERATIONS,
  ...REPLAY_OPERATIONS,
  ...ENDPOINT_OPERATIONS,
  rotateWebhookEndpointSecret,
  rotateWebhookEndpointSigningKey,
  testWebhookEndpoint,
  webhookEndpointStatistics,
  ...OPERATIONS_URL_OPERATIONS,
  listEndpointAlerts,
  ...RETRY_OPERATIONS,
];
