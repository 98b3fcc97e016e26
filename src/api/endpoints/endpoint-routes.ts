import { Type } from 'typebox';
import { type AlertView, endpointAlertsOf } from '../../alerts/operations-url.ts';
import { deleteEndpoint, enableEndpoint, holdEndpoint } from '../../endpoints/endpoint-modes.ts';
import {
  addEndpoint,
  type EndpointView,
  endpointStatus,
  endpointsOf,
  updateEndpoint,
} from '../../endpoints/endpoints.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { PAGE_PARAMETERS, pageOf, positionOf, rowsToRead } from '../external/page.ts';
import { accountObjectId, count, dateTime, listOf, NoQuery, nullable, text } from '../external/schema-kit.ts';
import { accountOf, apiActorOf, SCOPES, urlFor } from '../keys/api-key-auth.ts';
import { documented } from '../openapi/documented.ts';
import { testWebhookEndpoint, webhookEndpointStatistics } from './endpoint-checks.ts';
import {
  ChangedEndpoint,
  CreatedEndpoint,
  EndpointChange,
  EndpointWithWaiting,
  IdParams,
  NewEndpoint,
} from './endpoint-schemas.ts';
import { rotateWebhookEndpointSecret, rotateWebhookEndpointSigningKey } from './endpoint-secrets.ts';
import { changeOperationsUrl, operationsUrl } from './operations-url.ts';

/** Webhook endpoints and their alerts. */
export function webhookRoutes(app: ExternalApp, context: ExternalContext): void {
  listWebhookEndpoints(app, context);
  createWebhookEndpoint(app, context);
  getWebhookEndpoint(app, context);
  updateWebhookEndpoint(app, context);
  deleteWebhookEndpoint(app, context);
  pauseWebhookEndpoint(app, context);
  enableWebhookEndpoint(app, context);
  rotateWebhookEndpointSecret(app, context);
  rotateWebhookEndpointSigningKey(app, context);
  testWebhookEndpoint(app, context);
  webhookEndpointStatistics(app, context);
  operationsUrl(app, context);
  changeOperationsUrl(app, context);
  endpointAlerts(app, context);
}

/** GET /api/external/webhook-endpoints/:id */
function getWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'getWebhookEndpoint',
      summary: 'Get a webhook endpoint',
      description:
        'With what waits for it. A key without `manage_webhooks` gets the origin of the URL and a hash of the rest.',
      tag: 'Webhook endpoints',
      answers: { 200: { description: 'The endpoint.' } },
    }),
    params: IdParams,
    querystring: NoQuery,
    response: { 200: EndpointWithWaiting },
  };
  const options = { schema, config: SCOPES.readWebhooks };
  app.get('/api/external/webhook-endpoints/:id', options, async (request) => {
    const { wabaId } = accountOf(request);
    const found = await endpointStatus(accounts, wabaId, accountObjectId(request.params.id));
    return endpointJson({ ...found, url: urlFor(request, found.url) });
  });
}

/** GET /api/external/webhook-endpoints: the endpoints of a WABA, the oldest first. */
function listWebhookEndpoints(app: ExternalApp, { accounts, cursors }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'listWebhookEndpoints',
      summary: 'List webhook endpoints',
      description:
        'The oldest first, with what waits for each. Secrets and values of headers are never shown. A key without `manage_webhooks` gets the origins of URLs and hashes of the rest.',
      tag: 'Webhook endpoints',
      answers: { 200: { description: 'A page of endpoints.' } },
    }),
    querystring: Type.Object(PAGE_PARAMETERS, { additionalProperties: false }),
    response: { 200: listOf(EndpointWithWaiting) },
  };
  app.get('/api/external/webhook-endpoints', { schema, config: SCOPES.readWebhooks }, async (request) => {
    const { wabaId } = accountOf(request);
    const { limit, cursor } = request.query;
    const scope = [wabaId, 'webhook-endpoints'];
    const [afterId = '0'] = positionOf(cursors, scope, cursor) ?? [];
    const found = await endpointsOf(accounts, wabaId, { afterId, limit: rowsToRead(limit) });
    const { rows, ...page } = pageOf(found, limit, ({ id }) => cursors.encode(scope, [id]));
    return { data: rows.map((row) => endpointJson({ ...row, url: urlFor(request, row.url) })), ...page };
  });
}

/** DELETE /api/external/webhook-endpoints/:id: what waits is dropped and stays in the log. */
function deleteWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'deleteWebhookEndpoint',
      summary: 'Delete a webhook endpoint',
      description: 'What waits for it is dropped; the log stays.',
      tag: 'Webhook endpoints',
      answers: { 200: { description: 'How many were dropped.' } },
    }),
    params: IdParams,
    querystring: NoQuery,
    response: {
      200: Type.Object({ id: text('3'), deleted: Type.Literal(true), dropped: count(2) }),
    },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.delete('/api/external/webhook-endpoints/:id', options, async (request) => {
    const { wabaId } = accountOf(request);
    const { id, dropped } = await deleteEndpoint(
      { ...accounts, actor: apiActorOf(request) },
      wabaId,
      accountObjectId(request.params.id),
    );
    return { id, deleted: true as const, dropped };
  });
}

/** POST /api/external/webhook-endpoints/:id/pause: events wait until the endpoint is enabled. */
function pauseWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'pauseWebhookEndpoint',
      summary: 'Pause a webhook endpoint',
      description: 'Events wait until it is enabled.',
      tag: 'Webhook endpoints',
      requests: { 'without a reason': {}, 'with a reason': { reason: 'release' } },
      answers: {
        200: {
          description: 'The endpoint as it is now.',
          example: { mode: 'paused', modeReason: 'release' },
        },
      },
    }),
    params: IdParams,
    querystring: NoQuery,
    body: Type.Object({ reason: Type.Optional(Type.String()) }, { additionalProperties: false }),
    response: { 200: EndpointWithWaiting },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.post('/api/external/webhook-endpoints/:id/pause', options, async (request) => {
    const { wabaId } = accountOf(request);
    const id = accountObjectId(request.params.id);
    const { reason = '' } = request.body;
    await holdEndpoint({ ...accounts, actor: apiActorOf(request) }, wabaId, { id, mode: 'paused', reason });
    return endpointJson(await endpointStatus(accounts, wabaId, id));
  });
}

/** PATCH /api/external/webhook-endpoints/:id: changes the members that are given; null goes back to the default. */
function updateWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'updateWebhookEndpoint',
      summary: 'Change a webhook endpoint',
      description:
        'Changes the members that are given; null goes back to the default. When scheme, host or port of `url` change, ' +
        '`customHeaders` that are not given in the same request are forgotten, because their values were meant for the ' +
        'server before: `droppedHeaderNames` names them. `secretRotationAdvised` is then true: the server before still ' +
        'knows the signing secret. `sameUrlEndpointIds` names other endpoints with the same URL.',
      tag: 'Webhook endpoints',
      errors: ['invalid_url', 'unknown_phone_number', 'url_is_webhook_endpoint', 'url_not_verified'],
      requests: { url: { url: 'https://shop.example/hook' }, 'all events': { eventTypes: null } },
      answers: { 200: { description: 'The endpoint as it is now.' } },
    }),
    params: IdParams,
    querystring: NoQuery,
    body: EndpointChange,
    response: { 200: ChangedEndpoint },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.patch('/api/external/webhook-endpoints/:id', options, async (request) => {
    const { wabaId } = accountOf(request);
    const { id, droppedHeaderNames, secretRotationAdvised, sameUrlEndpointIds, appSecret } =
      await updateEndpoint(
        { ...accounts, actor: apiActorOf(request) },
        wabaId,
        accountObjectId(request.params.id),
        request.body,
      );
    const changed = endpointJson(await endpointStatus(accounts, wabaId, id));
    return { ...changed, droppedHeaderNames, secretRotationAdvised, sameUrlEndpointIds, appSecret };
  });
}

/** POST /api/external/webhook-endpoints: adds an endpoint; its secret is in this answer only. */
function createWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'createWebhookEndpoint',
      summary: 'Add a webhook endpoint',
      description:
        'Up to 100 in a WABA. `secret` is in this answer only. `sameUrlEndpointIds` names other endpoints with the same ' +
        'URL, which then receives each event once for each of them.',
      tag: 'Webhook endpoints',
      errors: [
        'invalid_url',
        'unknown_phone_number',
        'url_is_webhook_endpoint',
        'url_not_verified',
        'too_many_endpoints',
      ],
      requests: {
        'everything by default': { url: 'https://shop.example/hook' },
        'some events, custom header': {
          url: 'https://shop.example/hook',
          description: 'shop server',
          eventTypes: ['message', 'status'],
          customHeaders: { 'X-Token': 'a value of yours' },
        },
        'as a Meta app': {
          url: 'https://chat.example/webhooks/whatsapp/+12025550143',
          format: 'meta',
          appSecret: 'the app secret that the software knows',
          verifyToken: 'the token that the software expects',
        },
      },
      answers: {
        201: {
          description: 'The endpoint; events that come from now on are sent to it.',
          headers: ['Location'],
        },
      },
    }),
    querystring: NoQuery,
    body: NewEndpoint,
    response: { 201: CreatedEndpoint },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.post('/api/external/webhook-endpoints', options, async (request, reply) => {
    const created = await addEndpoint(
      { ...accounts, actor: apiActorOf(request) },
      accountOf(request).wabaId,
      request.body,
    );
    reply.code(201).header('location', `/api/external/webhook-endpoints/${created.id}`);
    return endpointJson(created);
  });
}

const Enabling = Type.Object(
  { waiting: Type.Optional(Type.Enum(['send', 'drop'])) },
  { additionalProperties: false },
);

/** POST /api/external/webhook-endpoints/:id/enable: `waiting` says what becomes of what waits, and must when any does. */
function enableWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'enableWebhookEndpoint',
      summary: 'Enable a webhook endpoint',
      description: 'Lets what waits go, or drops it: say which when any does.',
      tag: 'Webhook endpoints',
      errors: ['waiting_choice_required'],
      requests: {
        'nothing waits': {},
        'send what waits': { waiting: 'send' },
        'drop it': { waiting: 'drop' },
      },
      answers: { 200: { description: 'The endpoint as it is now.' } },
    }),
    params: IdParams,
    querystring: NoQuery,
    body: Enabling,
    response: { 200: Type.Object({ ...EndpointWithWaiting.properties, dropped: Type.Integer() }) },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.post('/api/external/webhook-endpoints/:id/enable', options, async (request) => {
    const { wabaId, keyId } = accountOf(request);
    const id = accountObjectId(request.params.id);
    const { waiting = null } = request.body;
    const { dropped } = await enableEndpoint({ ...accounts, actor: apiActorOf(request) }, wabaId, {
      id,
      waiting,
      by: `API key ${keyId}`,
    });
    return { ...endpointJson(await endpointStatus(accounts, wabaId, id)), dropped };
  });
}

const Alert = Type.Object(
  {
    id: text('alr_019aa2b37c4d7e8f9a0b1c2d3e4f5063'),
    endpointId: text('3'),
    alert: text('endpoint.failing'),
    state: Type.Enum(['waiting', 'delivered', 'given_up'], { examples: ['delivered'] }),
    attempts: count(1),
    lastError: nullable(Type.String()),
    createdAt: dateTime(),
    deliveredAt: nullable(dateTime(), '2026-11-21T09:30:00.210Z'),
    givenUpAt: nullable(dateTime()),
  },
  { title: 'EndpointAlert' },
);

/** GET /api/external/endpoint-alerts: what went wrong with endpoints and who was told, the newest first. */
function endpointAlerts(app: ExternalApp, { accounts, cursors }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'listEndpointAlerts',
      summary: 'List alerts about endpoints',
      description:
        'The newest first, also those that were sent nowhere. `alert` is `endpoint.failing`, `endpoint.disabled`, ' +
        '`endpoint.recovered` or `endpoint.deliveries_failed`; more can come.',
      tag: 'Endpoint alerts',
      answers: { 200: { description: 'A page of alerts.' } },
    }),
    querystring: Type.Object(PAGE_PARAMETERS, { additionalProperties: false }),
    response: { 200: listOf(Alert) },
  };
  app.get('/api/external/endpoint-alerts', { schema, config: SCOPES.readWebhooks }, async (request) => {
    const { wabaId } = accountOf(request);
    const { limit, cursor } = request.query;
    const scope = [wabaId, 'endpoint-alerts'];
    const [createdAt, uuid] = positionOf(cursors, scope, cursor) ?? [];
    const before = createdAt === undefined || uuid === undefined ? null : { createdAt, uuid };
    const found = await endpointAlertsOf(accounts, wabaId, { before, limit: rowsToRead(limit) });
    const { rows, ...page } = pageOf(found, limit, (row) => cursors.encode(scope, positionIn(row)));
    return { data: rows.map(alertJson), ...page };
  });
}

/** PostgreSQL reads a UUID without dashes too. */
function positionIn({ createdAt, alertId }: AlertView): [string, string] {
  return [createdAt.toISOString(), alertId.slice('alr_'.length)];
}

function alertJson({ alertId, wabaId, isEndpointDeleted, ...alert }: AlertView) {
  return {
    id: alertId,
    ...alert,
    createdAt: alert.createdAt.toISOString(),
    deliveredAt: alert.deliveredAt?.toISOString() ?? null,
    givenUpAt: alert.givenUpAt?.toISOString() ?? null,
  };
}

/** An endpoint as tenants see it. */
function endpointJson<View extends EndpointView>(view: View) {
  const { wabaId, version, probeFailures, ...shown } = view;
  return {
    ...shown,
    modeChangedAt: view.modeChangedAt.toISOString(),
    failingSince: view.failingSince?.toISOString() ?? null,
    nextProbeAt: view.nextProbeAt?.toISOString() ?? null,
    previousSecretExpiresAt: view.previousSecretExpiresAt?.toISOString() ?? null,
    publicKeys:
      view.publicKeys?.map(({ publicKey, expiresAt }) => ({
        publicKey,
        expiresAt: expiresAt?.toISOString() ?? null,
      })) ?? null,
    clientCertificate: view.clientCertificate && {
      ...view.clientCertificate,
      expiresAt: view.clientCertificate.expiresAt.toISOString(),
    },
    createdAt: view.createdAt.toISOString(),
    updatedAt: view.updatedAt.toISOString(),
  };
}
