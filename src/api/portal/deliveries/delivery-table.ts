import type { DeliveryState, ListedDelivery } from '../../../features/delivery-log/deliveries.ts';
import { publicDeliveryId } from '../../../platform/public-ids.ts';
import type { Viewer } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { cutId } from '../components/copyable.ts';
import { type Column, dataTable } from '../components/table.ts';
import { columnTime, durationText, timeAgo } from '../components/time.ts';
import { urlFor } from '../endpoints/endpoint-status.ts';
import { type Child, html, type Markup } from '../markup.ts';

/** The id of the form that the boxes of pending deliveries belong to. */
export const SELECTION = 'selection';

export type DeliveryTableView = {
  viewer: Viewer;
  deliveries: readonly ListedDelivery[];
  now: Date;
  hrefOf: (publicId: string, wabaId: string) => string;
  /** For operators: whose it is. */
  withOwner: boolean;
  /** Left out where the page is about one endpoint. */
  withEndpoint: boolean;
  isSelectable?: boolean;
  /** Left out: deliveries. */
  caption?: string;
};

export function deliveryTable(view: DeliveryTableView): Markup {
  const columns: (Column | false)[] = [
    { label: 'Time', kind: 'time' },
    view.withOwner && 'WABA',
    { label: 'Status', kind: 'narrow' },
    'Event',
    view.withEndpoint && 'Endpoint',
    { label: 'Attempts', kind: 'number' },
    'Result',
    { label: 'Latency', kind: 'number' },
    { label: 'Next', kind: 'narrow' },
  ];
  return dataTable(
    view.caption ?? 'Deliveries',
    columns.filter((column) => column !== false),
    view.deliveries.map((delivery) => rowOf(delivery, view)),
    view.deliveries.map(({ id }) => publicDeliveryId(id)),
  );
}

function rowOf(
  delivery: ListedDelivery,
  { viewer, now, hrefOf, withOwner, withEndpoint, isSelectable = false }: DeliveryTableView,
): Child[] {
  const { id, wabaId, businessName, eventType, eventId, state, attempts, lastDurationMs, replayId } =
    delivery;
  const href = hrefOf(publicDeliveryId(id), wabaId);
  const type = eventType === null ? '–' : html`<code>${eventType}</code>`;
  const shownId = eventId === null ? '–' : cutId(eventId, withEndpoint ? 'narrow' : 'wide');
  const owner = html`<span class="cut owner" title="${businessName}">${businessName}</span><br><span class="faint mono">${wabaId}</span>`;
  return [
    html`${isSelectable && selectionBox(delivery)}<a href="${href}">${columnTime(delivery.createdAt)}</a>`,
    ...(withOwner ? [owner] : []),
    html`${deliveryBadge(state, attempts)}${replayId !== null && html`<br><span class="faint">replay</span>`}`,
    html`${type}<br>${shownId}`,
    ...(withEndpoint ? [endpointCell({ viewer, withOwner }, delivery)] : []),
    attempts,
    answerText(delivery),
    lastDurationMs === null ? '–' : durationText(lastDurationMs),
    timeAgo(delivery.nextAttemptAt, now),
  ];
}

/** The others keep its place free, so that all times stand below each other. */
function selectionBox({ id, state, eventId }: ListedDelivery): Markup {
  if (state !== 'pending') return html`<span class="tick"></span>`;
  return html`<span class="tick"><input type="checkbox" form="${SELECTION}" name="id" value="${publicDeliveryId(id)}" aria-label="Select ${eventId ?? 'this delivery'}"></span>`;
}

function endpointCell(
  { viewer, withOwner }: Pick<DeliveryTableView, 'viewer' | 'withOwner'>,
  { endpointUrl, endpointDescription, endpointId }: ListedDelivery,
): Markup {
  if (endpointUrl === null) return html`<span class="faint">${endpointId}, deleted</span>`;
  const url = urlFor(viewer, endpointUrl);
  // Where the owner has a column too, there is less room.
  const cut = withOwner ? 'cut owner' : 'cut';
  if (endpointDescription) {
    return html`<span class="${cut}" title="${endpointDescription}">${endpointDescription}</span><br><span class="faint" title="${url}">endpoint ${endpointId}</span>`;
  }
  const address = url.replace(/^https?:\/\//, '');
  const [host = ''] = address.split('/', 1);
  const path = address.slice(host.length) || '/';
  return html`<span class="${cut}" title="${url}">${host}</span><br><span class="${cut} faint" title="${url}">${endpointId}: ${path}</span>`;
}

export function deliveryBadge(state: DeliveryState, attempts: number): Markup {
  if (state === 'delivered') return badge('good', 'Delivered');
  if (state === 'failed') return badge('bad', 'Failed');
  if (state === 'dropped') return badge('off', 'Dropped');
  return attempts === 0 ? badge('waiting', 'Pending') : badge('waiting', 'Retrying');
}

/** The response to the last attempt: a code, or the class of the error; the whole text in the title. */
function answerText(delivery: { lastStatusCode: number | null; lastError: string | null }): Markup {
  const { lastStatusCode, lastError } = delivery;
  if (lastStatusCode !== null)
    return html`<span class="mono" title="${lastError ?? ''}">${lastStatusCode}</span>`;
  if (lastError === null) return html`<span class="faint">–</span>`;
  const errorClass = /^[a-z_]{1,24}(?=: )/.exec(lastError)?.[0];
  return html`<span class="mono wrapped" title="${lastError}">${errorClass ?? shortened(lastError)}</span>`;
}

const SHOWN_CHARS = 20;

function shortened(text: string): string {
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS - 1).toWellFormed()}…` : text;
}
