import type { DeliveryDetail } from '../../../features/delivery-log/deliveries.ts';
import { findEvent } from '../../../features/delivery-log/events.ts';
import {
  cancelDelivery,
  type DeliveryReport,
  deliveryOf,
} from '../../../features/delivery-log/shown-delivery.ts';
import { endpointsThatFilter } from '../../../features/endpoints/filtered-endpoints.ts';
import { obstacleToRetry, retryDelivery } from '../../../features/endpoints/retry-now.ts';
import { startReplay } from '../../../features/replays/replays.ts';
import { openEventIdHash } from '../../../platform/crypto/installation-secret.ts';
import { utcText } from '../../../platform/iso-time.ts';
import { publicBatchId, publicDeliveryId, publicEventId } from '../../../platform/public-ids.ts';
import { workflowListUrl } from '../../../platform/temporal/client-connection.ts';
import { eventQuery } from '../../../platform/temporal/workflow-options.ts';
import { mayUse } from '../access/link-access.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import type { Viewer } from '../access/viewer.ts';
import { codeBlock, copyable, copyButton, shownBlock } from '../components/copyable.ts';
import { actionButton } from '../components/form.ts';
import { detailList } from '../components/table.ts';
import { exactTime, relativeText } from '../components/time.ts';
import { workflowLink } from '../components/workflow-link.ts';
import { endpointPath, urlFor } from '../endpoints/endpoint-status.ts';
import { action } from '../kits/action.ts';
import { confirmationPage } from '../kits/confirmation-page.ts';
import { download, viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { attemptTable, attemptView } from './attempt-view.ts';
import { deliveryLists } from './delivery-list.ts';
import { deliverySelection } from './delivery-selection.ts';
import { deliveryBadge } from './delivery-table.ts';
import { prettyJson, shownBytes, shownText } from './shown-text.ts';

const PATH = '/portal/w/:wabaId/deliveries/:id';
const DONE = {
  dropped: 'The delivery is dropped. The next event of its ordering key is sent.',
  retried: 'The next attempt is made now. Reload the page in a moment.',
};

/** Sent events with every attempt: of one WABA, and of all for operators. One delivery has one page, that of its tenant. */
export function deliveryPages(app: PortalApp, context: PortalContext): void {
  deliveryLists(app, context);
  deliveryPage(app, context);
  deliveryActions(app, context);
  deliverySelection(app, context);
}

async function find(visit: Visit): Promise<DeliveryReport> {
  return await deliveryOf(visit.context, visit.waba.wabaId, visit.param('id'));
}

function deliveryPage(app: PortalApp, context: PortalContext): void {
  const access = PAGES.member;
  viewPage(app, context, {
    path: PATH,
    access,
    active: 'deliveries',
    query: ['attempt'],
    view: async (visit) => {
      const report = await find(visit);
      await noteDeliveryRead(visit, report);
      return await deliveryView(visit, report);
    },
  });
  download(app, context, {
    path: `${PATH}/body`,
    access,
    send: async (visit) => {
      const report = await find(visit);
      const { body, eventUuid } = report.delivery;
      if (body === null) throw pageNotFound();
      await noteDeliveryRead(visit, report);
      const fileName = `${publicEventId(eventUuid)}.json`;
      visit.reply.header('content-disposition', `attachment; filename="${fileName}"`);
      return visit.reply.type('application/json; charset=utf-8').send(body);
    },
  });
}

/** The page shows the body, and what the receiver answered. */
async function noteDeliveryRead(visit: Visit, { delivery }: DeliveryReport): Promise<void> {
  await visit.noteRead('delivery.read', `delivery ${publicDeliveryId(delivery.id)}`);
}

function deliveryActions(app: PortalApp, context: PortalContext): void {
  const access = PAGES.admin;
  action(app, context, {
    path: `${PATH}/replay`,
    access,
    act: async (visit) => {
      const { delivery } = await find(visit);
      const selection = { deliveryIds: [publicDeliveryId(delivery.id)] };
      const by = visit.viewer.email;
      const { replayId } = await startReplay(visit.tools, visit.waba.wabaId, selection, by);
      return `/portal/w/${visit.waba.wabaId}/replays/${replayId}`;
    },
  });
  action(app, context, {
    path: `${PATH}/retry`,
    access,
    act: async (visit) => {
      await retryDelivery(visit.tools, visit.waba.wabaId, visit.param('id'));
      return `${visit.at(PATH)}?done=retried`;
    },
  });
  confirmationPage(app, context, {
    path: `${PATH}/drop`,
    access,
    active: 'deliveries',
    load: find,
    title: () => 'Drop this delivery?',
    trail: (visit) => [
      { label: 'Deliveries', href: `/portal/w/${visit.waba.wabaId}/deliveries` },
      { label: 'Delivery', href: visit.at(PATH) },
    ],
    body: ({ delivery }) => html`<p>${delivery.eventType} <code>${delivery.eventId}</code></p>
<p>It is not sent any more, and the next event of its ordering key follows. It stays in the log, and a replay can send it.</p>`,
    button: 'Drop',
    act: async (visit) => {
      await cancelDelivery(visit.tools, visit.waba.wabaId, visit.param('id'));
      return `${visit.at(PATH)}?done=dropped`;
    },
  });
}

function pathOf({ wabaId, id }: DeliveryReport['delivery']): string {
  return `/portal/w/${encodeURIComponent(wabaId)}/deliveries/${publicDeliveryId(id)}`;
}

async function deliveryView(visit: Visit, { delivery, attempts }: DeliveryReport): Promise<PageView> {
  const { viewer, now } = visit;
  const number = visit.query('attempt');
  const shown = attempts.find(({ attempt }) => String(attempt) === number) ?? attempts[0];
  const path = pathOf(delivery);
  const details = [
    ...facts(viewer, delivery),
    ...(await temporalRows(visit, delivery)),
    ...(await filterRows(visit, delivery)),
  ];
  return {
    title: delivery.eventType === null ? 'Delivery' : `Delivery: ${delivery.eventType}`,
    trail: [{ label: 'Deliveries', href: `/portal/w/${visit.waba.wabaId}/deliveries` }],
    actions: visit.mayChange && actions(viewer, path, delivery),
    done: DONE,
    assets: ['webhooks.css'],
    body: html`<div class="card state"><p>${deliveryBadge(delivery.state, delivery.attempts)} ${nextStep(delivery, now)}</p></div>
<div class="card">${detailList(details)}</div>
<h2>Attempts</h2>
${
  shown === undefined
    ? html`<p class="faint">${delivery.attempts === 0 ? 'None yet.' : `${attemptCount(delivery.attempts)} made; requests and responses are no longer kept.`}</p>`
    : html`${attemptTable(path, attempts, shown)}${attempts.length < delivery.attempts && html`<p class="hint">Only the newest ${attempts.length} of ${delivery.attempts} are shown.</p>`}
<h2 id="attempt">Attempt ${shown.attempt}</h2>${attemptView(viewer, delivery, shown)}`
}
${visit.mayUse(`${path}/body`) && html`<h2>Body</h2>${bodyView(path, delivery)}`}`,
  };
}

function actions(viewer: Viewer, path: string, delivery: DeliveryReport['delivery']): Markup {
  const { state, body, endpointUrl } = delivery;
  const isReplayable = state !== 'pending' && body !== null && endpointUrl !== null;
  const isRetryable = obstacleToRetry(delivery) === null;
  return html`${state === 'pending' && mayUse(viewer.link, 'GET', `${path}/drop`) && html`<a class="button danger" href="${path}/drop">Drop</a>`}${isRetryable && actionButton(viewer, `${path}/retry`, 'Retry now', 'primary')}${isReplayable && actionButton(viewer, `${path}/replay`, 'Replay this delivery', 'primary')}`;
}

function facts(viewer: Viewer, delivery: DeliveryReport['delivery']): [string, Child][] {
  const { wabaId, endpointId, endpointUrl, endpointDescription } = delivery;
  const { replayId, replayOf, conversationId } = delivery;
  const base = `/portal/w/${encodeURIComponent(wabaId)}`;
  const rows: [string, Child][] = [
    ['Event', eventOf(delivery)],
    ['webhook-id', copyable(publicEventId(delivery.eventUuid))],
    ['Delivery id', copyable(publicDeliveryId(delivery.id))],
    [
      'Endpoint',
      endpointUrl === null
        ? `${endpointId}, deleted`
        : html`<a class="break" href="${endpointPath(wabaId, endpointId)}">${endpointDescription || urlFor(viewer, endpointUrl)}</a>`,
    ],
    ['Created', exactTime(delivery.createdAt)],
    ['Sequence', delivery.sequence ?? '–'],
  ];
  if (delivery.sentWith !== null) {
    const first = { ...delivery, id: delivery.sentWith };
    const id = html`<code>${publicBatchId(first.id)}</code>`;
    rows.push([
      'Batch',
      html`${id}, sent with other messages${first.id !== delivery.id && html` by <a class="mono" href="${pathOf(first)}">${publicDeliveryId(first.id)}</a>`}`,
    ]);
  }
  if (delivery.steppedAsideAt !== null) {
    const since = exactTime(delivery.steppedAsideAt);
    rows.push(['Stepped aside', html`${since}; later events of its key no longer wait for it`]);
  }
  if (conversationId !== null && mayUse(viewer.link, 'GET', `${base}/conversations`)) {
    rows.push([
      'Conversation',
      html`<a href="${base}/conversations/${conversationId}">${conversationId}</a>`,
    ]);
  }
  if (replayId !== null) {
    const original = replayOf === null ? null : publicDeliveryId(replayOf);
    const what =
      original === null
        ? ', the first for this endpoint'
        : html`, of <a class="mono" href="${base}/deliveries/${original}">${original}</a>`;
    rows.push(['Replay', html`<a href="${base}/replays/${replayId}">${replayId}</a>${what}`]);
  }
  return rows;
}

/** Other endpoints whose content filter does not take this event, as it is now. */
async function filterRows(
  { context: { database }, viewer }: Visit,
  { wabaId, eventUuid, body }: DeliveryDetail,
): Promise<[string, Child][]> {
  if (!mayUse(viewer.link, 'GET', `${endpointPath(wabaId, '1')}/filter`)) return [];
  const event = await findEvent(database, wabaId, eventUuid);
  if (event === null) return [];
  const endpointIds = await endpointsThatFilter(database, wabaId, { event, body: body?.toString('utf8') });
  if (endpointIds.length === 0) return [];
  const links = endpointIds.map(
    (id) => html`<a href="${endpointPath(wabaId, id)}/filter">endpoint ${id}</a> `,
  );
  return [['Filtered at', html`${links}<span class="faint">by the content filter as it is now</span>`]];
}

async function temporalRows(visit: Visit, delivery: DeliveryDetail): Promise<[string, Child][]> {
  const { context, viewer, now } = visit;
  const { eventId, workflowId } = delivery;
  const shown =
    workflowId === null
      ? html`<span class="faint">${noWorkflow(delivery, now)}</span>`
      : workflowLink(visit, workflowId);
  const workflow: [string, Child] = ['Workflow', shown];
  const eventIdHash = eventId === null ? null : await openEventIdHash(context.accounts)(eventId);
  if (viewer.role !== 'operator' || eventIdHash === null) return [workflow];
  const url = workflowListUrl(context.config.temporal, eventQuery(eventIdHash));
  const text = 'All workflows with this eventId';
  const link = html`<a href="${url}" rel="noreferrer">${text}</a>, as <code class="break">${eventIdHash}</code>`;
  return [workflow, ['In Temporal', link]];
}

/** Why a delivery has no workflow. Of one that was attempted it is not known whether Temporal was away, or a run was just being replaced. */
function noWorkflow(delivery: DeliveryDetail, now: Date): Child {
  if (delivery.attempts > 0)
    return 'none: its worker had no delivery-session workflow open when it was attempted.';
  if (delivery.state !== 'pending') return 'none: it was never attempted.';
  return html`none yet: it was not attempted. ${waitingFor(delivery, now)}`;
}

function eventOf({ eventType, eventId }: DeliveryReport['delivery']): Child {
  if (eventType === null) return html`<span class="faint">no longer kept</span>`;
  return html`<code>${eventType}</code> ${copyable(eventId ?? '')}`;
}

function attemptCount(attempts: number): string {
  return attempts === 1 ? 'One attempt was' : `${attempts} attempts were`;
}

const MAX_SHOWN_BYTES = 24_000;
const MAX_BYTES_SHOWN = 12_000;
const BYTES_ID = 'body-as-sent';

function bodyView(path: string, { body, eventType }: DeliveryReport['delivery']): Markup {
  if (eventType === null) return html`<p class="faint">The event is no longer kept.</p>`;
  if (body === null) return html`<p class="faint">The event is not released yet.</p>`;
  // It only gets longer, so nothing is lost that would be shown.
  const pretty = shownText(prettyJson(body.toString('utf8', 0, MAX_SHOWN_BYTES)), {
    maxHtmlBytes: MAX_SHOWN_BYTES,
    isCutAlready: body.length > MAX_SHOWN_BYTES,
    sizeBytes: body.length,
  });
  const sent = shownBytes(body, MAX_BYTES_SHOWN);
  // A signature matches the bytes only, so nothing else is offered for copying.
  const isWhole = Buffer.from(sent).equals(body);
  return html`<div class="buttons body-actions">${isWhole && copyButton(BYTES_ID, 'Copy as sent')}<a href="${path}/body" download>Download as sent</a> <span class="faint">${body.length.toLocaleString('en-US')} bytes</span></div>
${shownBlock(pretty, 'Body (formatted)')}
<p class="hint">Formatted for reading. The signature is over the bytes as they were sent.</p>
<details class="quiet"><summary>As sent, byte for byte</summary>${isWhole ? codeBlock(sent, 'Body, byte for byte', BYTES_ID) : shownBlock(sent, 'Body, byte for byte')}</details>`;
}

const MODES = {
  paused: 'It waits until the paused endpoint is enabled.',
  disabled: 'It waits until the disabled endpoint is enabled.',
  probing: 'It waits until the failing endpoint has recovered.',
};

/** What becomes of a delivery, or became of it: the rest of the sentence that its state begins. */
function nextStep(delivery: DeliveryDetail, now: Date): Child {
  const { state, attempts, finishedAt, lastError } = delivery;
  const count = `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`;
  const at = finishedAt === null ? '' : `at ${utcText(finishedAt)}, `;
  switch (state) {
    case 'delivered':
      return `${at}after ${count}.`;
    case 'failed':
      return `permanently ${at}after ${count}: ${lastError ?? 'no reason recorded'}. No more attempts follow, unless you replay it.`;
    case 'dropped':
      return `${at}after ${count}: ${lastError ?? 'no reason recorded'}. It is not sent unless you replay it.`;
    case 'pending':
      return html`${waitingFor(delivery, now)}${asideText(delivery)}`;
  }
}

function asideText({ steppedAsideAt }: DeliveryDetail): string {
  if (steppedAsideAt === null) return '';
  return ` It stepped aside at ${utcText(steppedAsideAt)}: later events of its key no longer wait for it.`;
}

function waitingFor(delivery: DeliveryDetail, now: Date): Child {
  const { queueState, endpointMode, nextAttemptAt, attempts, blockedBy } = delivery;
  if (queueState === 'claimed') return 'An attempt is in progress.';
  if (queueState === 'queued') {
    const head = blockedBy === null ? null : { ...delivery, id: blockedBy };
    return html`It waits for an earlier event of its ordering key${head !== null && html`: <a class="mono" href="${pathOf(head)}">${publicDeliveryId(head.id)}</a>`}.`;
  }
  if (queueState === 'unreleased')
    return delivery.body === null
      ? 'Its order waits for catalog data; then it is sent.'
      : 'It waits for other messages of its conversation, to be sent with them.';
  if (queueState === 'suspended') return 'It waits until its paused replay is resumed.';
  if (endpointMode !== null && endpointMode !== 'open') return MODES[endpointMode];
  if (queueState === 'retrying' && nextAttemptAt !== null) {
    return `Attempt ${attempts + 1} follows ${relativeText(nextAttemptAt, now)}, at ${utcText(nextAttemptAt)}.`;
  }
  return 'It waits for a free worker.';
}
