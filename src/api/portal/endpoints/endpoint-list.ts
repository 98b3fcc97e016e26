import { Type } from 'typebox';
import { MAX_SHOWN_WAITING } from '../../../deliveries/shown-count.ts';
import { type EndpointActivity, readEndpointActivity } from '../../../endpoints/endpoint-activity.ts';
import { type EndpointStatus, endpointsOf } from '../../../endpoints/endpoints.ts';
import { shownUrl } from '../../../platform/http/shown-url.ts';
import { PAGES } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { viewerOf } from '../access/viewer.ts';
import { wabaOf } from '../access/waba-of.ts';
import { emptyState } from '../components/empty-state.ts';
import { noticeAfter } from '../components/notice.ts';
import { dataTable } from '../components/table.ts';
import { timeAgo } from '../components/time.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { endpointPath, endpointsPath, mayChange } from './endpoint-context.ts';
import { modeBadge, successRate, waitingText } from './endpoint-status.ts';

const DONE = { deleted: 'The endpoint is deleted. The log of its deliveries stays.' };

const COLUMNS = [
  { label: 'Endpoint' },
  { label: 'Status', kind: 'narrow' },
  { label: 'Event types' },
  { label: 'Success rate, 24 h', kind: 'number' },
  { label: 'Last success', kind: 'narrow' },
  { label: 'Last failure', kind: 'narrow' },
  { label: 'Pending', kind: 'number' },
] as const;

const NO_ACTIVITY = { successes: 0, failures: 0, lastSuccessAt: null, lastFailureAt: null };

/** GET /portal/w/:wabaId/endpoints: where events go, and how well they arrive. */
export function endpointListPage(app: PortalApp, { accounts, now }: PortalContext): void {
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
    const add = mayChange(viewer) && html`<a class="button primary" href="${path}/new">Add an endpoint</a>`;
    const body =
      endpoints.length === 0
        ? noEndpoint(add)
        : dataTable(
            'Webhook endpoints',
            COLUMNS,
            endpoints.map((endpoint) =>
              rowOf(endpoint, activity.get(endpoint.id) ?? NO_ACTIVITY, new Date(now())),
            ),
          );
    return sendPage(reply, {
      title: 'Webhook endpoints',
      viewer,
      waba,
      active: 'endpoints',
      lead: 'Each endpoint receives the events of this WABA that match its filters, signed, in order, and retried until they arrive.',
      actions: html`<a class="button" href="${path}/alerts">Alerts</a>${endpoints.length > 0 && add}`,
      notice: noticeAfter(request.query.done, DONE),
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

function rowOf(endpoint: EndpointStatus, activity: EndpointActivity, now: Date): readonly Child[] {
  const { url, description, modeReason, eventTypes, waiting } = endpoint;
  return [
    html`<a class="break" href="${endpointPath(endpoint.wabaId, endpoint.id)}">${shownUrl(url)}</a>${description !== '' && html`<br><span class="faint">${description}</span>`}`,
    html`${modeBadge(endpoint)}${modeReason !== null && html`<br><span class="faint reason">${modeReason}</span>`}`,
    eventTypes === null ? html`<span class="faint">all</span>` : eventTypes.join(', '),
    successRate(activity) ?? html`<span class="faint">–</span>`,
    timeAgo(activity.lastSuccessAt, now),
    timeAgo(activity.lastFailureAt, now),
    waitingText(waiting),
  ];
}
