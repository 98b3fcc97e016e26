import { CONDITION_FORMS, checkFilter, filterOf } from '../../../engine/endpoint/event-filter.ts';
import { listEvents, readEventBodies } from '../../../features/delivery-log/events.ts';
import { endpointStatus } from '../../../features/endpoints/endpoints.ts';
import { includesType } from '../../../platform/event-type.ts';
import { isMembers } from '../../../platform/json/json-members.ts';
import { publicEventId } from '../../../platform/public-ids.ts';
import type { RequestError } from '../../../platform/request-input.ts';
import { PAGES, searchOf } from '../access/page-access.ts';
import { badge } from '../components/badge.ts';
import { postForm, textArea } from '../components/form.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { timeAgo } from '../components/time.ts';
import { formLine } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { SETTINGS_TITLE } from './endpoint-shell.ts';
import { endpointPath, endpointsPath } from './endpoint-status.ts';

const PATH = '/portal/w/:wabaId/endpoints/:id/filter';
const SHOWN = 20;
const MAX_CHARS = 16_384;

/** GET …/endpoints/:id/filter tries the stored filter on recent events; POST tries another one, and saves nothing. */
export function filterPages(app: PortalApp, context: PortalContext): void {
  const place = { path: PATH, active: 'endpoints' };
  viewPage(app, context, { ...place, access: PAGES.member, view: (visit) => filterView(visit, null) });
  action(app, context, {
    ...place,
    access: searchOf(PAGES.member),
    fields: { filter: formLine(MAX_CHARS) },
    act: (visit, given) => filterView(visit, given.text('filter')),
    refused: (visit, error, given) => filterView(visit, given.text('filter'), error),
  });
}

/** `text` null: the stored filter. Throws RequestError for one that is wrong, unless that is the `error` to show. */
async function filterView(
  visit: Visit,
  text: string | null,
  error: RequestError | null = null,
): Promise<PageView> {
  const { context, viewer, id } = visit;
  const { wabaId } = visit.waba;
  const endpoint = await endpointStatus(context.accounts, wabaId, id);
  const lines = text === null ? (endpoint.filter ?? []) : text.split(/\r?\n/);
  const isEmpty = lines.every((line) => line.trim() === '');
  const filter = error !== null || isEmpty ? null : checkFilter(lines);
  await visit.noteListRead('events.listed', [wabaId]);
  const own = endpointPath(wabaId, endpoint.id);
  const fields = textArea({
    label: 'Content filter',
    name: 'filter',
    rows: 4,
    maxLength: MAX_CHARS,
    value: text ?? lines.join('\n'),
    hint: `One condition to a line: ${CONDITION_FORMS}. All must hold.`,
    error: error?.message ?? null,
  });
  const edit =
    visit.mayChange &&
    visit.mayUse(`${own}/edit`) &&
    html`<a class="button" href="${own}/edit">Edit endpoint</a>`;
  return {
    title: 'Try a filter',
    lead: `The newest ${SHOWN} events of the types and numbers of this endpoint, and which of them the filter takes. Nothing is saved here.`,
    trail: [
      { label: SETTINGS_TITLE, href: endpointsPath(wabaId) },
      { label: `Endpoint ${endpoint.id}`, href: own },
    ],
    assets: ['webhooks.css'],
    error,
    body: html`<div class="card">${postForm(viewer, `${own}/filter`, html`${fields}<div class="buttons"><button class="primary">Try</button>${edit}</div>`)}</div>
${error === null && (await verdictTable(visit, endpoint, filter))}`,
  };
}

type Endpoint = Awaited<ReturnType<typeof endpointStatus>>;

async function verdictTable(
  { context: { database }, now }: Visit,
  { wabaId, eventTypes, phoneNumberIds }: Endpoint,
  filter: string[] | null,
): Promise<Markup> {
  const everything = { eventTypes, eventId: null, phoneNumberId: null, deliveryState: null };
  const span = { ...everything, sinceMs: null, untilMs: null };
  const page = await listEvents(database, wabaId, span, { order: 'desc', afterId: null, limit: SHOWN * 5 });
  const events = page.events
    .filter(
      (event) =>
        includesType(eventTypes, event.eventType) &&
        (phoneNumberIds === null ||
          event.phoneNumberId === null ||
          phoneNumberIds.includes(event.phoneNumberId)),
    )
    .slice(0, SHOWN);
  if (events.length === 0) return emptyState('No events yet', 'A filter can be tried once events are here.');
  const bodies = await readEventBodies(database, wabaId, events);
  const judged = events.map((event) => ({ event, verdict: verdictOf(bodies.get(event.id), filter) }));
  const taken = judged.filter(({ verdict }) => verdict === true).length;
  const base = `/portal/w/${encodeURIComponent(wabaId)}/deliveries`;
  const rows = judged.map(({ event, verdict }): Child[] => [
    verdictBadge(verdict),
    html`<span class="mono">${event.eventType}</span>`,
    html`<a class="mono break" href="${base}?id=${publicEventId(event.id)}">${publicEventId(event.id)}</a>`,
    timeAgo(event.createdAt, now),
  ]);
  const columns = [{ label: 'Filter', kind: 'narrow' as const }, 'Type', 'Event', 'Created'];
  return html`<h2>${taken} of ${events.length} events are taken</h2>${dataTable('Recent events', columns, rows)}`;
}

/** Null: its data is not known yet. */
function verdictOf(body: string | undefined, filter: string[] | null): boolean | null {
  if (filter === null) return true;
  if (body === undefined) return null;
  const event: unknown = JSON.parse(body);
  return filterOf(filter)(isMembers(event) ? event.data : undefined);
}

function verdictBadge(verdict: boolean | null): Markup {
  if (verdict === null) return badge('neutral', 'Not known yet');
  return verdict ? badge('good', 'Taken') : badge('neutral', 'Filtered');
}
