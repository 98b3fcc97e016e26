import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { createWebhookEndpoint } from './create-endpoint.ts';
import { deleteWebhookEndpoint } from './delete-endpoint.ts';
import { enableWebhookEndpoint } from './enable-endpoint.ts';
import { endpointAlerts } from './endpoint-alerts.ts';
import { webhookEndpointStatistics } from './endpoint-statistics.ts';
import { getWebhookEndpoint } from './get-endpoint.ts';
import { listWebhookEndpoints } from './list-endpoints.ts';
import { changeOperationsUrl, operationsUrl } from './operations-url.ts';
import { pauseWebhookEndpoint } from './pause-endpoint.ts';
import { rotateWebhookEndpointSecret } from './rotate-endpoint-secret.ts';
import { testWebhookEndpoint } from './test-endpoint.ts';
import { updateWebhookEndpoint } from './update-endpoint.ts';

/** Everything about webhook endpoints and the alerts that tell of them. */
export function webhookRoutes(app: ExternalApp, context: ExternalContext): void {
  listWebhookEndpoints(app, context);
  createWebhookEndpoint(app, context);
  getWebhookEndpoint(app, context);
  updateWebhookEndpoint(app, context);
  deleteWebhookEndpoint(app, context);
  pauseWebhookEndpoint(app, context);
  enableWebhookEndpoint(app, context);
  rotateWebhookEndpointSecret(app, context);
  testWebhookEndpoint(app, context);
  webhookEndpointStatistics(app, context);
  operationsUrl(app, context);
  changeOperationsUrl(app, context);
  endpointAlerts(app, context);
}
