import { MAX_SHOWN_WAITING } from '../../../engine/queue/waiting.ts';
import { type DeliveryReport, deliveryOf } from '../../../features/delivery-log/shown-delivery.ts';
import {
  type EndpointActivity,
  readEndpointActivity,
} from '../../../features/endpoints/endpoint-statistics.ts';
import { type EndpointStatus, endpointStatus, endpointsOf } from '../../../features/endpoints/endpoints.ts';
import { sendTestEvent } from '../../../features/endpoints/test-event.ts';
import { publicDeliveryId } from '../../../platform/public-ids.ts';
import { PAGES, withoutFreshProof } from '../access/page-access.ts';
import type { Viewer } from '../access/viewer.ts';
import { codeBlock } from '../components/copyable.ts';
import { actionButton } from '../components/form.ts';
import { detailList } from '../components/table.ts';
import { durationText, timeAgo } from '../components/time.ts';
import { explainOutcome } from '../deliveries/attempt-view.ts';
import { deliveryBadge } from '../deliveries/delivery-table.ts';
import { shownBytes } from '../deliveries/shown-text.ts';
import { action } from '../kits/action.ts';
import { type ListColumn, listPage } from '../kits/list-page.ts';
import { livePiece, viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { alertPages } from './alert-pages.ts';
import { endpointActions } from './endpoint-actions.ts';
import { endpointCreatePages, endpointEditPages, urlCheckFragment } from './endpoint-edit.ts';
import { endpointPage } from './endpoint-page.ts';
import { endpointSecurityPage } from './endpoint-security.ts';
import { endpointSettingsPage } from './endpoint-settings.ts';
import { ENDPOINT_LIST as LIST, ENDPOINT_PATH as PATH, SETTINGS_TITLE } from './endpoint-shell.ts';
import { endpointPath, modeBadge, successRate, urlFor, waitingText } from './endpoint-status.ts';
import { filterPages } from './filter-page.ts';

export function endpointPages(app: PortalApp, context: PortalContext): void {
  endpointListPage(app, context);
  endpointCreatePages(app, context);
  urlCheckFragment(app, context);
  alertPages(app, context);
  endpointPage(app, context);
  endpointSettingsPage(app, context);
  endpointSecurityPage(app, context);
  endpointEditPages(app, context);
  filterPages(app, context);
  endpointActions(app, context);
  testEventPages(app, context);
}

const DONE = { deleted: 'The endpoint is deleted. The log of its deliveries stays.' };

const NO_ACTIVITY = { successes: 0, failures: 0, lastSuccessAt: null, lastFailureAt: null };

type Row = { endpoint: EndpointStatus; activity: EndpointActivity };

const COLUMNS: ListColumn<Row>[] = [
  { label: 'Endpoint', cell: ({ endpoint }, { viewer }) => endpointCell(viewer, endpoint) },
  { label: 'Status', kind: 'narrow', cell: ({ endpoint }) => modeBadge(endpoint) },
  {
    label: 'Event types',
    cell: ({ endpoint }) => endpoint.eventTypes?.join(', ') ?? html`<span class="faint">all</span>`,
  },
  {
    label: 'Success rate, 24 h',
    kind: 'number',
    cell: ({ activity }) => successRate(activity) ?? html`<span class="faint">–</span>`,
  },
  {
    label: 'Last success',
    kind: 'narrow',
    cell: ({ activity }, { now }) => timeAgo(activity.lastSuccessAt, now),
  },
  {
    label: 'Last failure',
    kind: 'narrow',
    cell: ({ activity }, { now }) => timeAgo(activity.lastFailureAt, now),
  },
  { label: 'Pending', kind: 'number', cell: ({ endpoint }) => waitingText(endpoint.waiting) },
  {
    label: '',
    kind: 'narrow',
    cell: ({ endpoint: { wabaId, id } }, { viewer, mayChange }) =>
      mayChange && actionButton(viewer, `${endpointPath(wabaId, id)}/test`, 'Send test event'),
  },
];

function endpointCell(viewer: Viewer, { wabaId, id, url, description, modeReason }: EndpointStatus): Markup {
  const about = [`Endpoint ${id}`, description].filter((text) => text !== '').join(': ');
  return html`<a class="break" href="${endpointPath(wabaId, id)}">${urlFor(viewer, url)}</a><br><span class="faint">${about}</span>${modeReason !== null && html`<br><span class="reason">${modeReason}</span>`}`;
}

/** As many as a WABA can have. */
const PAGE_SIZE = 100;

function endpointListPage(app: PortalApp, context: PortalContext): void {
  const { accounts } = context;
  listPage(app, context, {
    path: LIST,
    access: PAGES.member,
    active: 'endpoints',
    title: SETTINGS_TITLE,
    lead: 'Each endpoint receives the events of this WABA that match its filters, signed, in order, and retried until they arrive.',
    actions: (visit) =>
      visit.mayUse(`${visit.path}/alerts`) &&
      html`<a class="button" href="${visit.path}/alerts">Operations URL</a>`,
    add: { label: 'Add endpoint', path: `${LIST}/new`, isPrimary: true },
    done: DONE,
    assets: ['webhooks.css'],
    columns: COLUMNS,
    pageSize: PAGE_SIZE,
    find: async ({ waba }) => {
      const [endpoints, activity] = await Promise.all([
        endpointsOf(accounts, waba.wabaId, { maxWaiting: MAX_SHOWN_WAITING }),
        readEndpointActivity(accounts.database, waba.wabaId),
      ]);
      return endpoints.map((endpoint) => {
        return { endpoint, activity: activity.get(endpoint.id) ?? NO_ACTIVITY };
      });
    },
    empty: {
      title: 'No endpoint yet',
      text: 'Add the https URL of your server. It receives events from then on; a replay can send earlier ones.',
    },
  });
}

/** Leaves time for the start of the workflow within the time that a request may take. */
const WAIT_MS = 8_000;
const TEST = `${PATH}/tests/:deliveryId`;

/** POST …/test sends the test event and waits for its attempt; GET …/tests/:deliveryId shows what came of it. */
function testEventPages(app: PortalApp, context: PortalContext): void {
  action(app, context, {
    path: `${PATH}/test`,
    access: withoutFreshProof(PAGES.admin, 'the event is constant and goes to an endpoint that exists'),
    act: async (visit) => {
      const tools = { ...visit.tools, startDelivery: context.startDelivery, waitMs: WAIT_MS };
      const { deliveryId, startError } = await sendTestEvent(tools, visit.waba.wabaId, visit.id);
      if (startError !== null) {
        visit.request.log.warn({ err: startError }, 'the workflow of a test event could not be started');
      }
      return `${visit.at(PATH)}/tests/${deliveryId}`;
    },
  });
  const find = async (visit: Visit) =>
    await deliveryOf(context, visit.waba.wabaId, visit.param('deliveryId'));
  viewPage(app, context, {
    path: TEST,
    access: PAGES.member,
    active: 'endpoints',
    view: async (visit) => {
      const endpoint = await endpointStatus(context.accounts, visit.waba.wabaId, visit.id);
      const report = await find(visit);
      const path = visit.at(PATH);
      const isOpen = report.delivery.state === 'pending';
      return {
        title: 'Test event',
        lead: html`Sent once, without retries, whatever the endpoint’s filters and status, to <code class="break">${urlFor(visit.viewer, endpoint.url)}</code>`,
        trail: [
          { label: SETTINGS_TITLE, href: visit.at(LIST) },
          { label: endpoint.description || `Endpoint ${endpoint.id}`, href: path },
        ],
        actions: html`<a class="button" href="${path}">Go to the endpoint</a>${visit.mayChange && actionButton(visit.viewer, `${path}/test`, 'Send another', 'primary')}`,
        assets: ['webhooks.css'],
        body: isOpen
          ? html`<div data-live="${visit.path}/outcome" data-live-ms="1500">${outcome(report)}</div>`
          : outcome(report),
      };
    },
  });
  livePiece(app, context, {
    path: `${TEST}/outcome`,
    access: PAGES.member,
    piece: async (visit) => outcome(await find(visit)),
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
