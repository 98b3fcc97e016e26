import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { DELIVERY_STATES } from '../../../deliveries/log/deliveries.ts';
import type { GivenDeliveryFilter } from '../../../deliveries/search/delivery-filter.ts';
import type { DeliveryPosition } from '../../../deliveries/search/delivery-scan.ts';
import { type DeliverySearch, searchDeliveries } from '../../../deliveries/search/delivery-search.ts';
import { type FoundObject, findObjects } from '../../../deliveries/search/find-objects.ts';
import { listEndpoints } from '../../../endpoints/store.ts';
import { ALL_UPSTREAM, EVENT_TYPES, upstreamTypeOf } from '../../../platform/event-type.ts';
import { isPublicId } from '../../../platform/public-ids.ts';
import { invalidValue, type RequestError } from '../../../platform/request-input.ts';
import { KNOWN_FIELDS } from '../../../platform/upstream-fields.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown } from '../access/page-error.ts';
import { openSearch, sealSearch } from '../access/private-search.ts';
import { sendPage } from '../access/send-page.ts';
import { noteListRead, type Viewer, viewerOf } from '../access/viewer.ts';
import { csrfField, selectField, textField } from '../components/form.ts';
import { noticeBox } from '../components/notice.ts';
import { pager } from '../components/pager.ts';
import { emptyState } from '../components/table.ts';
import { utcText } from '../components/time.ts';
import { endpointOption, mayChange } from '../endpoints/endpoint-status.ts';
import { formLine, formValues } from '../form-values.ts';
import { html, type Markup } from '../markup.ts';
import type { WabaInView } from '../navigation.ts';
import type { PortalContext } from '../portal-app.ts';
import { deliveryTable, SELECTION } from './delivery-table.ts';
import { foundObjects } from './found-objects.ts';

const SHOWN = 50;

const DONE = {
  retried: 'The next attempts are made now.',
  dropped: 'The deliveries are dropped. The next events of their ordering keys are sent.',
};

/** The deliveries that a list shows: those of a WABA, or (null) of all, for operators. */
export type DeliveryScope = { waba: WabaInView | null; path: string; active: string };

/** Where lists of deliveries are: of a WABA, and of all for operators. */
export const DELIVERY_PLACES = [
  { path: '/portal/w/:wabaId/deliveries', access: PAGES.member, changing: PAGES.admin },
  { path: '/portal/operator/deliveries', access: PAGES.operator, changing: PAGES.operator },
] as const;

/** The deliveries of the page of a request. */
export function scopeOf({ portalWaba: waba }: FastifyRequest): DeliveryScope {
  if (waba === null) {
    return { waba, path: '/portal/operator/deliveries', active: 'operator/deliveries' };
  }
  return { waba, path: `/portal/w/${waba.wabaId}/deliveries`, active: 'deliveries' };
}

type Found = {
  query: DeliveryQuery;
  cursor: string;
  search: DeliverySearch | null;
  /** What else has the id. */
  objects: FoundObject[];
  error: RequestError | null;
};

/** The list with its filters. Without a cursor it follows what happens, where scripts run. */
export async function sendDeliveryList(
  request: FastifyRequest,
  reply: FastifyReply,
  context: PortalContext,
  scope: DeliveryScope,
): Promise<FastifyReply> {
  const found = await find(request, context, scope);
  const { query, cursor, error } = found;
  const { waba, path, active } = scope;
  const endpoints = waba === null ? null : await listEndpoints(context.database, waba.wabaId);
  const isLive = cursor === '' && error === null && query.until === '';
  const table = resultOf(request, context, scope, found);
  const live = html`<div id="delivery-rows" data-live="${path}/rows${queryText(query)}" data-live-ms="3000">${table}</div>`;
  return sendPage(
    reply,
    {
      title: waba === null ? 'All deliveries' : 'Deliveries',
      active,
      lead:
        waba === null
          ? 'One event for one endpoint, of every WABA, the newest first.'
          : 'One event for one endpoint, the newest first. Open a delivery to see its attempts with request and response.',
      actions: isLive && liveSwitch(`${path}${queryText(query)}`),
      assets: ['webhooks.css'],
      done: DONE,
      notice: error !== null && error.param === null ? { kind: 'error', text: error.message } : null,
      body: html`${deliveryFilters({ viewer: viewerOf(request), action: path, query, endpoints, error })}${isLive ? live : table}`,
    },
    error === null ? 200 : 422,
  );
}

/** Leads from the form of the list to its address, in which no phone number stands. */
export function redirectToDeliveries(
  request: FastifyRequest,
  reply: FastifyReply,
  { path }: DeliveryScope,
): FastifyReply {
  const query = readDeliveryQuery(request, request.body);
  const isOpen = query.id === '' || isPublicId(query.id);
  const search = isOpen ? '' : sealSearch(request, query.id);
  return reply.redirect(`${path}${queryText({ ...query, search })}`, 303);
}

/** The piece of the list that a script fetches again and again. */
export async function sendDeliveryRows(
  request: FastifyRequest,
  reply: FastifyReply,
  context: PortalContext,
  scope: DeliveryScope,
): Promise<FastifyReply> {
  const found = await find(request, context, scope);
  return reply.type('text/html; charset=utf-8').send(resultOf(request, context, scope, found).toString());
}

function liveSwitch(href: string): Markup {
  return html`<label class="check live-switch"><input type="checkbox" data-live-switch="delivery-rows" checked> Follow live</label><noscript><a class="button" href="${href}">Reload</a></noscript>`;
}

async function find(request: FastifyRequest, context: PortalContext, scope: DeliveryScope): Promise<Found> {
  const query = readDeliveryQuery(request, request.query);
  const cursor = formValues(request.query).text('cursor');
  return await orShown<Found>(
    async () => {
      if (query.search !== '' && query.id === '') throw searchOfOthers();
      const wabaId = scope.waba === null ? wabaAskedFor(viewerOf(request), query) : scope.waba.wabaId;
      const before = positionOf(context, scope, query, cursor);
      const filter = filterOf(query, context.now());
      const search = await searchDeliveries(context, wabaId, filter, { before, limit: SHOWN });
      const objects = query.id === '' ? [] : await findObjects(context.database, wabaId, query.id);
      const action = query.id === '' ? 'deliveries.listed' : 'deliveries.searched';
      const shown = scope.waba === null ? search.deliveries : [scope.waba];
      await noteListRead(
        request,
        context.database,
        action,
        shown.map((one) => one.wabaId),
      );
      return { query, cursor, search, objects, error: null };
    },
    (error) => ({ query, cursor, search: null, objects: [], error }),
  );
}

function searchOfOthers(): RequestError {
  return invalidValue('This address belongs to a search of another session. Enter the id again.', 'id');
}

/** Only operators come to a list of all. */
function wabaAskedFor({ role }: Viewer, { wabaId }: DeliveryQuery): string | null {
  if (role !== 'operator') throw new Error('a list of all deliveries is for operators');
  if (wabaId === '') return null;
  if (/^\d{1,64}$/.test(wabaId)) return wabaId;
  throw invalidValue('The id of a WABA has digits only.', 'wabaId');
}

function cursorScope({ waba }: DeliveryScope, query: DeliveryQuery): [string | null, string, string] {
  return [waba?.wabaId ?? null, 'portal deliveries', queryText(query)];
}

function positionOf(
  { cursors }: PortalContext,
  scope: DeliveryScope,
  query: DeliveryQuery,
  cursor: string,
): DeliveryPosition | null {
  if (cursor === '') return null;
  const [day, atMicros, id] = cursors.decode(cursorScope(scope, query), cursor) ?? [];
  if (day === undefined || atMicros === undefined || id === undefined) {
    throw invalidValue('This link is no longer valid: search again from the first page.');
  }
  return { day, atMicros, id };
}

function resultOf(
  request: FastifyRequest,
  context: PortalContext,
  scope: DeliveryScope,
  found: Found,
): Markup {
  const { query, cursor, search, objects } = found;
  if (search === null) return html``;
  const { deliveries, next, searchedTo } = search;
  const { path, waba } = scope;
  const nextHref =
    next === null
      ? null
      : `${path}${queryText(query, { cursor: context.cursors.encode(cursorScope(scope, query), [next.day, next.atMicros, next.id]) })}`;
  const viewer = viewerOf(request);
  const isSelectable = mayChange(viewer) && deliveries.some(({ state }) => state === 'pending');
  const table =
    deliveries.length === 0
      ? nothingFound(found, scope)
      : deliveryTable({
          deliveries,
          now: new Date(context.now()),
          hrefOf: (id, wabaId) => `/portal/w/${encodeURIComponent(wabaId)}/deliveries/${id}`,
          withOwner: waba === null,
          withEndpoint: true,
          isSelectable,
        });
  const further =
    searchedTo !== null &&
    noticeBox({
      kind: 'information',
      text: html`Searched back to ${utcText(searchedTo)}. <a href="${nextHref ?? path}">Search further back</a>`,
    });
  const selection = isSelectable && selectionForm(viewer, scope, queryText(query, { cursor }));
  return html`${foundObjects(objects)}${selection}${table}${further}${pager({ firstHref: cursor === '' ? null : `${path}${queryText(query)}`, nextHref: searchedTo === null ? nextHref : null })}`;
}

/** What can be done to the deliveries that are selected in the table. Those of several WABAs are not dropped together. */
function selectionForm(viewer: Viewer, { path, waba }: DeliveryScope, filters: string): Markup {
  const to = (change: string) => `${path}/selected/${change}${filters}`;
  return html`<form method="post" id="${SELECTION}" action="${to('retry')}" class="selection buttons">${csrfField(viewer)}<label class="check" data-select-all hidden><input type="checkbox"> Select all</label><span class="faint">Selected deliveries:</span> <button>Retry now</button>${waba !== null && html`<button class="danger" formaction="${to('drop')}">Drop</button>`}</form>`;
}

/** The list that a change of selected deliveries came from, with its filters. */
export function backToList(
  request: FastifyRequest,
  { path }: DeliveryScope,
  more: Readonly<Record<string, string>> = {},
): string {
  const query = readDeliveryQuery(request, request.query);
  const cursor = formValues(request.query).text('cursor');
  return `${path}${queryText(query, { cursor, ...more })}`;
}

function nothingFound({ query, search }: Found, { waba, path }: DeliveryScope): Markup {
  if (search?.searchedTo) return html``;
  if (queryText(query) !== '') {
    return emptyState(
      'Nothing found',
      'No delivery matches these filters.',
      html`<a class="button" href="${path}">Show all</a>`,
    );
  }
  const text = 'A delivery appears here as soon as an event is sent to an endpoint.';
  if (waba === null) return emptyState('No deliveries within seven days', text);
  const endpoints = `/portal/w/${encodeURIComponent(waba.wabaId)}/endpoints`;
  return emptyState(
    'No deliveries within seven days',
    text,
    html`<a class="button" href="${endpoints}">Send a test event from an endpoint</a>`,
  );
}

const STATE_LABELS = {
  pending: 'Pending or retrying',
  delivered: 'Delivered',
  failed: 'Failed',
  dropped: 'Dropped',
};

type FiltersView = {
  viewer: Viewer;
  action: string;
  query: DeliveryQuery;
  /** Null: operators, who name a WABA instead. */
  endpoints: readonly { id: string; url: string; description: string }[] | null;
  error: RequestError | null;
};

/** The form over the list: it leads to an address, in which an id of upstream stands sealed. */
function deliveryFilters({ viewer, action, query, endpoints, error }: FiltersView): Markup {
  const about = (param: string) => (error !== null && error.param === param ? error.message : null);
  const isMore = query.since !== '' || query.until !== '' || query.response !== '';
  return html`<form method="post" action="${action}/search" class="delivery-filters" role="search" aria-label="Deliveries">${csrfField(viewer)}<div class="filters">
${textField({ label: 'Any id', name: 'id', type: 'search', placeholder: 'event, message, endpoint …', value: query.id, maxLength: 512, error: about('id') })}
${selectField({ label: 'Status', name: 'state', value: query.state, options: choices(DELIVERY_STATES, STATE_LABELS), error: about('state') })}
${selectField({ label: 'Event type', name: 'eventType', value: query.eventType, options: eventTypeChoices(query.eventType), error: about('eventType') })}
${endpoints === null ? wabaField(query, about) : endpointField(query, endpoints, about('endpointId'))}
${selectField({ label: 'Time', name: 'range', value: query.range, options: RANGES })}
<div class="buttons"><button class="primary">Search</button><a class="button" href="${action}">Clear</a></div></div>
<details ${isMore && html`open`}><summary>More filters</summary><div class="filters">
${textField({ label: 'From (UTC)', name: 'since', type: 'datetime-local', value: query.since, error: about('since') })}
${textField({ label: 'To (UTC)', name: 'until', type: 'datetime-local', value: query.until, error: about('until') })}
${textField({ label: 'Response or error of an attempt', name: 'response', value: query.response, placeholder: '503, 5xx, timeout …', maxLength: 30, error: about('response') })}
</div></details></form>`;
}

/** A field that has no name here can be in an address. */
function eventTypeChoices(chosen: string) {
  const known = [...EVENT_TYPES, ALL_UPSTREAM, ...KNOWN_FIELDS.map(upstreamTypeOf)] as string[];
  return choices(chosen === '' || known.includes(chosen) ? known : [...known, chosen]);
}

function choices(names: readonly string[], labels: Readonly<Record<string, string>> = {}) {
  const named = names.map((name) => ({ value: name, label: labels[name] ?? name }));
  return [{ value: '', label: 'All' }, ...named];
}

function wabaField(query: DeliveryQuery, about: (param: string) => string | null): Markup {
  return html`${textField({ label: 'WABA', name: 'wabaId', value: query.wabaId, maxLength: 64, placeholder: 'id, 15 digits', error: about('wabaId') })}
${textField({ label: 'Endpoint', name: 'endpointId', value: query.endpointId, maxLength: 18, placeholder: 'id, such as 3', error: about('endpointId') })}`;
}

function endpointField(
  query: DeliveryQuery,
  endpoints: NonNullable<FiltersView['endpoints']>,
  error: string | null,
): Markup {
  const known = endpoints.map(endpointOption);
  const isGone = query.endpointId !== '' && !known.some(({ value }) => value === query.endpointId);
  const gone = isGone ? [{ value: query.endpointId, label: query.endpointId.slice(0, 18) }] : [];
  const options = [{ value: '', label: 'All' }, ...known, ...gone];
  return selectField({ label: 'Endpoint', name: 'endpointId', value: query.endpointId, options, error });
}

const HOUR_MS = 3_600_000;

/** Time ranges to choose from; `7d` is what is looked at when nothing is chosen. */
const RANGES = [
  { value: '', label: 'Last 7 days' },
  { value: '1h', label: 'Last hour' },
  { value: '24h', label: 'Last 24 hours' },
  { value: '30d', label: 'Last 30 days' },
  { value: 'all', label: 'Everything' },
] as const;

const RANGE_MS: Readonly<Record<string, number>> = {
  '1h': HOUR_MS,
  '24h': 24 * HOUR_MS,
  '30d': 720 * HOUR_MS,
};

/** The filters as the form has them, and `search`, which stands for `id` in an address. */
type DeliveryQuery = {
  state: string;
  eventType: string;
  endpointId: string;
  wabaId: string;
  range: string;
  since: string;
  until: string;
  response: string;
  id: string;
  search: string;
};

const NAMES = [
  'state',
  'eventType',
  'endpointId',
  'wabaId',
  'range',
  'since',
  'until',
  'response',
  'id',
  'search',
] as const satisfies readonly (keyof DeliveryQuery)[];

/** The fields of the form. */
export const DeliverySearchForm = Type.Object(
  Object.fromEntries(NAMES.map((name) => [name, Type.Optional(formLine())])),
);

/** Reads the filters of an address or of the form, whatever is in it. */
function readDeliveryQuery(request: FastifyRequest, given: unknown): DeliveryQuery {
  const values = formValues(given);
  const query = Object.fromEntries(NAMES.map((name) => [name, values.text(name).trim()])) as DeliveryQuery;
  const { search } = query;
  return search === '' ? query : { ...query, id: openSearch(request, search) ?? '' };
}

/** The filters as an address, those that are set; '' without any. */
function queryText(query: DeliveryQuery, more: Readonly<Record<string, string>> = {}): string {
  const left = query.search === '' ? 'search' : 'id';
  const set = NAMES.filter((name) => name !== left && query[name] !== '').map((name): [string, string] => [
    name,
    query[name],
  ]);
  const others = Object.entries(more).filter(([, value]) => value !== '');
  const text = new URLSearchParams([...set, ...others]).toString();
  return text === '' ? '' : `?${text}`;
}

/** What the filters ask for. Times of the form are UTC; what is no time becomes one that is refused. */
function filterOf(query: DeliveryQuery, nowMs: number): GivenDeliveryFilter {
  const { state, eventType, endpointId, response, id, range } = query;
  const rangeMs = RANGE_MS[range];
  const ofRange = rangeMs === undefined ? undefined : new Date(nowMs - rangeMs);
  const since = query.since === '' ? (range === 'all' ? new Date(0) : ofRange) : timeIn(query.since);
  const until = query.until === '' ? undefined : timeIn(query.until);
  return { state, eventType, endpointId, response, id, since, until };
}

/** A `datetime-local` value, or any other text. */
function timeIn(text: string): Date {
  return new Date(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?$/.test(text) ? `${text}Z` : text);
}
