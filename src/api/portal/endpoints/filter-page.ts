import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { listEvents, readEventBodies } from '../../../deliveries/log/events.ts';
import { endpointStatus } from '../../../endpoints/endpoints.ts';
import { CONDITION_FORMS, checkFilter, filterOf } from '../../../endpoints/event-filter.ts';
import { includesType } from '../../../platform/event-type.ts';
import { isMembers } from '../../../platform/json/json-members.ts';
import { publicEventId } from '../../../platform/public-ids.ts';
import type { RequestError } from '../../../platform/request-input.ts';
import { accountObjectId } from '../../external/schema-kit.ts';
import { PAGES, searchOf } from '../access/page-access.ts';
import { orShown } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { viewerOf, wabaOf } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { postForm, textArea } from '../components/form.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { timeAgo } from '../components/time.ts';
import { formLine, formOf, formValues } from '../form-values.ts';
import { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { endpointPath, endpointsPath, mayChange } from './endpoint-status.ts';

const PATH = '/portal/w/:wabaId/endpoints/:id/filter';
const Params = Type.Object({ wabaId: Type.String(), id: Type.String() });
const Form = formOf({ filter: formLine(16_384) });
const SHOWN = 20;

/** GET …/endpoints/:id/filter tries the stored filter on recent events; POST tries another one, and saves nothing. */
export function filterPages(app: PortalApp, context: PortalContext): void {
  app.get(PATH, { config: PAGES.member, schema: { params: Params } }, async (request, reply) =>
    sendFilter(request, reply, context, { id: request.params.id, text: null }),
  );
  const schema = { params: Params, body: Form };
  app.post(PATH, { config: searchOf(PAGES.member), schema }, async (request, reply) => {
    const tried = { id: request.params.id, text: formValues(request.body).text('filter') };
    return await orShown(
      () => sendFilter(request, reply, context, tried),
      (error) => sendFilter(request, reply, context, { ...tried, error }),
    );
  });
}

/** `text` null: the stored filter. */
type Tried = { id: string; text: string | null; error?: RequestError };

async function sendFilter(
  request: FastifyRequest,
  reply: FastifyReply,
  context: PortalContext,
  { id, text, error }: Tried,
): Promise<FastifyReply> {
  const { wabaId } = wabaOf(request);
  const viewer = viewerOf(request);
  const endpoint = await endpointStatus(context.accounts, wabaId, accountObjectId(id));
  const lines = text === null ? (endpoint.filter ?? []) : text.split(/\r?\n/);
  const isEmpty = lines.every((line) => line.trim() === '');
  const filter = error !== undefined || isEmpty ? null : checkFilter(lines);
  await new Visit(request, reply, context).noteListRead('events.listed', [wabaId]);
  const own = endpointPath(wabaId, endpoint.id);
  const fields = textArea({
    label: 'Content filter',
    name: 'filter',
    rows: 4,
    maxLength: 16_384,
    value: text ?? lines.join('\n'),
    hint: `One condition to a line: ${CONDITION_FORMS}. All must hold.`,
    error: error?.message ?? null,
  });
  const edit = mayChange(viewer) && html`<a class="button" href="${own}/edit">Edit endpoint</a>`;
  const view = {
    title: 'Try a filter',
    active: 'endpoints',
    lead: `The newest ${SHOWN} events of the types and numbers of this endpoint, and which of them the filter takes. Nothing is saved here.`,
    trail: [
      { label: 'Webhook endpoints', href: endpointsPath(wabaId) },
      { label: `Endpoint ${endpoint.id}`, href: own },
    ],
    assets: ['webhooks.css'],
    body: html`<div class="card">${postForm(viewer, `${own}/filter`, html`${fields}<div class="buttons"><button class="primary">Try</button>${edit}</div>`)}</div>
${error === undefined && (await verdictTable(context, endpoint, filter))}`,
  };
  return sendPage(reply, view, error === undefined ? 200 : 422);
}

type Endpoint = Awaited<ReturnType<typeof endpointStatus>>;

async function verdictTable(
  { database, now }: PortalContext,
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
  const at = new Date(now());
  const judged = events.map((event) => ({ event, verdict: verdictOf(bodies.get(event.id), filter) }));
  const taken = judged.filter(({ verdict }) => verdict === true).length;
  const base = `/portal/w/${encodeURIComponent(wabaId)}/deliveries`;
  const rows = judged.map(({ event, verdict }): Child[] => [
    verdictBadge(verdict),
    html`<span class="mono">${event.eventType}</span>`,
    html`<a class="mono break" href="${base}?id=${publicEventId(event.id)}">${publicEventId(event.id)}</a>`,
    timeAgo(event.createdAt, at),
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
