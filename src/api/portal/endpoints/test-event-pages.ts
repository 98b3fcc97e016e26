import { Type } from 'typebox';
import { type DeliveryReport, deliveryOf } from '../../../deliveries/search/shown-delivery.ts';
import { endpointStatus } from '../../../endpoints/endpoints.ts';
import { sendTestEvent } from '../../../endpoints/test-event.ts';
import { shownUrl } from '../../../platform/http/shown-url.ts';
import { publicDeliveryId } from '../../../platform/public-ids.ts';
import { accountObjectId } from '../../external/object-id.ts';
import { PAGES } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { viewerOf } from '../access/viewer.ts';
import { wabaOf } from '../access/waba-of.ts';
import { codeBlock } from '../components/copyable.ts';
import { actionButton } from '../components/form.ts';
import { detailList } from '../components/table.ts';
import { durationText } from '../components/time.ts';
import { deliveryBadge } from '../deliveries/delivery-state.ts';
import { explainOutcome } from '../deliveries/explain-outcome.ts';
import { shownBytes } from '../deliveries/shown-bytes.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { endpointPath, endpointsPath, mayChange, toolsOf } from './endpoint-context.ts';

/** Leaves time for the start of the workflow within the time that a request may take. */
const WAIT_MS = 8_000;
const PATH = '/portal/w/:wabaId/endpoints/:id';

const Params = Type.Object({ wabaId: Type.String(), id: Type.String() });
const TestParams = Type.Object({ ...Params.properties, deliveryId: Type.String() });

/** POST …/test sends the test event and waits for its attempt; GET …/tests/:deliveryId shows what came of it. */
export function testEventPages(app: PortalApp, context: PortalContext): void {
  app.post(`${PATH}/test`, { config: PAGES.admin, schema: { params: Params } }, async (request, reply) => {
    const { wabaId } = wabaOf(request);
    const id = accountObjectId(request.params.id);
    const tools = { ...toolsOf(request, context), startDelivery: context.startDelivery, waitMs: WAIT_MS };
    const { deliveryId, startError } = await sendTestEvent(tools, wabaId, id);
    if (startError !== null) {
      request.log.warn({ err: startError }, 'the workflow of a test event could not be started');
    }
    return reply.redirect(`${endpointPath(wabaId, id)}/tests/${deliveryId}`, 303);
  });
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
      ...{ viewer, waba },
      active: 'endpoints',
      lead: html`Sent once, without retries, whatever the endpoint’s filters and status, to <code class="break">${shownUrl(endpoint.url)}</code>`,
      trail: [
        { label: 'Webhook endpoints', href: endpointsPath(waba.wabaId) },
        { label: endpoint.description || `Endpoint ${endpoint.id}`, href: path },
      ],
      actions: html`<a class="button" href="${path}">To the endpoint</a>${mayChange(viewer) && actionButton(viewer, `${path}/test`, 'Send another', 'primary')}`,
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
