import { Type } from 'typebox';
import { type DeliveryReport, deliveryOf } from '../../../deliveries/search/shown-delivery.ts';
import { sendTestEvent } from '../../../deliveries/test-event.ts';
import { type EndpointActivity, readEndpointActivity } from '../../../endpoints/endpoint-statistics.ts';
import { type EndpointStatus, endpointStatus, endpointsOf } from '../../../endpoints/endpoints.ts';
import { publicDeliveryId } from '../../../platform/public-ids.ts';
import { MAX_SHOWN_WAITING } from '../../../queue/waiting.ts';
import { accountObjectId } from '../../external/schema-kit.ts';
import { PAGES, withoutFreshProof } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { type Viewer, viewerOf, wabaOf } from '../access/viewer.ts';
import { codeBlock } from '../components/copyable.ts';
import { actionButton } from '../components/form.ts';
import { dataTable, detailList, emptyState } from '../components/table.ts';
import { durationText, timeAgo } from '../components/time.ts';
import { explainOutcome } from '../deliveries/attempt-view.ts';
import { deliveryBadge } from '../deliveries/delivery-table.ts';
import { shownBytes } from '../deliveries/shown-text.ts';
import { EMPTY_FORM } from '../form-values.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { alertPages } from './alert-pages.ts';
import {
  endpointCertificateActions,
  endpointDeletePages,
  endpointModeActions,
  endpointRetryAction,
  endpointSecretActions,
  endpointSigningKeyAction,
} from './endpoint-actions.ts';
import { endpointCreatePages, endpointEditPages, urlCheckFragment } from './endpoint-edit.ts';
import { endpointPage } from './endpoint-page.ts';
import {
  endpointPath,
  endpointsPath,
  mayChange,
  modeBadge,
  successRate,
  toolsOf,
  urlFor,
  waitingText,
} from './endpoint-status.ts';
import { filterPages } from './filter-page.ts';

/** A WABA's webhook endpoints and their alerts. */
export function endpointPages(app: PortalApp, context: PortalContext): void {
  endpointListPage(app, context);
  endpointCreatePages(app, context);
  urlCheckFragment(app, context);
  alertPages(app, context);
  endpointPage(app, context);
  endpointEditPages(app, context);
  filterPages(app, context);
  endpointModeActions(app, context);
  endpointRetryAction(app, context);
  endpointSecretActions(app, context);
  endpointSigningKeyAction(app, context);
  endpointCertificateActions(app, context);
  endpointDeletePages(app, context);
  testEventPages(app, context);
}

const DONE = { deleted: 'The endpoint is deleted. The log of its deliveries stays.' };

const COLUMNS = [
  'Endpoint',
  { label: 'Status', kind: 'narrow' },
  'Event types',
  { label: 'Success rate, 24 h', kind: 'number' },
  { label: 'Last success', kind: 'narrow' },
  { label: 'Last failure', kind: 'narrow' },
  { label: 'Pending', kind: 'number' },
] as const;

const NO_ACTIVITY = { successes: 0, failures: 0, lastSuccessAt: null, lastFailureAt: null };

/** GET /portal/w/:wabaId/endpoints: where events go, and how well they arrive. */
function endpointListPage(app: PortalApp, { accounts, now }: PortalContext): void {
  const querystring = Type.Object({ done: Type.Optional(Type.String()) });
  const options = { config: PAGES.member, schema: { querystring } };
  app.get('/portal/w/:wabaId/endpoints', options, async (request, reply) => {
    const waba = wabaOf(request);
    const viewer = viewerOf(request);
    const [endpoints, activity] = await Promise.all([
      endpointsOf(accounts, waba.wabaId, { maxWaiting: MAX_SHOWN_WAITING }),
      readEndpointActivity(accounts.database, waba.wabaId),
    ]);
    const path = endpointsPath(waba.wabaId);
    const add = mayChange(viewer) && html`<a class="button primary" href="${path}/new">Add endpoint</a>`;
    const body =
      endpoints.length === 0
        ? noEndpoint(add)
        : dataTable(
            'Webhook endpoints',
            COLUMNS,
            endpoints.map((endpoint) =>
              rowOf(viewer, endpoint, activity.get(endpoint.id) ?? NO_ACTIVITY, new Date(now())),
            ),
          );
    return sendPage(reply, {
      title: 'Webhook endpoints',
      active: 'endpoints',
      lead: 'Each endpoint receives the events of this WABA that match its filters, signed, in order, and retried until they arrive.',
      actions: html`<a class="button" href="${path}/alerts">Operations URL</a>${endpoints.length > 0 && add}`,
      done: DONE,
      assets: ['webhooks.css'],
      body,
    });
  });
}

function noEndpoint(add: Child): Markup {
  return emptyState(
    'No endpoint yet',
    'Add the https URL of your server. It receives events from then on; a replay can send earlier ones.',
    add,
  );
}

function rowOf(
  viewer: Viewer,
  endpoint: EndpointStatus,
  activity: EndpointActivity,
  now: Date,
): readonly Child[] {
  const { id, url, description, modeReason, eventTypes, waiting } = endpoint;
  return [
    html`<a class="break" href="${endpointPath(endpoint.wabaId, id)}">${urlFor(viewer, url)}</a><br><span class="faint">${[`Endpoint ${id}`, description].filter((text) => text !== '').join(': ')}</span>${modeReason !== null && html`<br><span class="reason">${modeReason}</span>`}`,
    modeBadge(endpoint),
    eventTypes === null ? html`<span class="faint">all</span>` : eventTypes.join(', '),
    successRate(activity) ?? html`<span class="faint">–</span>`,
    timeAgo(activity.lastSuccessAt, now),
    timeAgo(activity.lastFailureAt, now),
    waitingText(waiting),
  ];
}

/** Leaves time for the start of the workflow within the time that a request may take. */
const WAIT_MS = 8_000;
const PATH = '/portal/w/:wabaId/endpoints/:id';

const Params = Type.Object({ wabaId: Type.String(), id: Type.String() });
const TestParams = Type.Object({ ...Params.properties, deliveryId: Type.String() });

/** POST …/test sends the test event and waits for its attempt; GET …/tests/:deliveryId shows what came of it. */
function testEventPages(app: PortalApp, context: PortalContext): void {
  const config = withoutFreshProof(PAGES.admin, 'the event is constant and goes to an endpoint that exists');
  app.post(
    `${PATH}/test`,
    { config, schema: { params: Params, body: EMPTY_FORM } },
    async (request, reply) => {
      const { wabaId } = wabaOf(request);
      const id = accountObjectId(request.params.id);
      const tools = { ...toolsOf(request, context), startDelivery: context.startDelivery, waitMs: WAIT_MS };
      const { deliveryId, startError } = await sendTestEvent(tools, wabaId, id);
      if (startError !== null) {
        request.log.warn({ err: startError }, 'the workflow of a test event could not be started');
      }
      return reply.redirect(`${endpointPath(wabaId, id)}/tests/${deliveryId}`, 303);
    },
  );
  const options = { config: PAGES.member, schema: { params: TestParams } };
  app.get(`${PATH}/tests/:deliveryId`, options, async (request, reply) => {
    const waba = wabaOf(request);
    const viewer = viewerOf(request);
    const endpoint = await endpointStatus(context.accounts, waba.wabaId, accountObjectId(request.params.id));
    const report = await deliveryOf(context, waba.wabaId, request.params.deliveryId);
    const path = endpointPath(waba.wabaId, endpoint.id);
    const live = `${path}/tests/${encodeURIComponent(request.params.deliveryId)}/outcome`;
    const isOpen = report.delivery.state === 'pending';
    return sendPage(reply, {
      title: 'Test event',
      active: 'endpoints',
      lead: html`Sent once, without retries, whatever the endpoint’s filters and status, to <code class="break">${urlFor(viewer, endpoint.url)}</code>`,
      trail: [
        { label: 'Webhook endpoints', href: endpointsPath(waba.wabaId) },
        { label: endpoint.description || `Endpoint ${endpoint.id}`, href: path },
      ],
      actions: html`<a class="button" href="${path}">Go to the endpoint</a>${mayChange(viewer) && actionButton(viewer, `${path}/test`, 'Send another', 'primary')}`,
      assets: ['webhooks.css'],
      body: isOpen
        ? html`<div data-live="${live}" data-live-ms="1500">${outcome(report)}</div>`
        : outcome(report),
    });
  });
  const polled = { ...options, config: { ...PAGES.member, polled: true } };
  app.get(`${PATH}/tests/:deliveryId/outcome`, polled, async (request, reply) => {
    const report = await deliveryOf(context, wabaOf(request).wabaId, request.params.deliveryId);
    return reply.type('text/html; charset=utf-8').send(outcome(report).toString());
  });
}

function outcome({ delivery, attempts }: DeliveryReport): Markup {
  const { state, wabaId, id } = delivery;
  const publicId = publicDeliveryId(id);
  const [attempt] = attempts;
  const log = `/portal/w/${encodeURIComponent(wabaId)}/deliveries/${publicId}`;
  if (attempt === undefined) {
    return html`<div class="card"><p>${deliveryBadge(state, 0)} No attempt yet. A worker sends it at once. <a href="">Reload</a></p></div>`;
  }
  return html`<div class="card"><p>${deliveryBadge(state, attempt.attempt)} ${explainOutcome(attempt)}</p>
${detailList([
  [
    'Response',
    attempt.statusCode === null ? attempt.errorClass : html`<strong>${attempt.statusCode}</strong>`,
  ],
  ['Duration', durationText(attempt.durationMs)],
  ['eventId', html`<code>${delivery.eventId}</code>`],
  ['Delivery', html`<a href="${log}" class="mono">${publicId}</a>`],
])}
${attempt.responseBody !== null && attempt.responseBody.length > 0 && html`<h2>Response body</h2>${codeBlock(shownBytes(attempt.responseBody), 'Response body')}`}</div>`;
}
