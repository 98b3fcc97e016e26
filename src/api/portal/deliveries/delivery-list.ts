import { listEndpoints } from '../../../engine/endpoint/store.ts';
import type { DeliveryPosition } from '../../../features/delivery-log/delivery-scan.ts';
import { type DeliverySearch, searchDeliveries } from '../../../features/delivery-log/delivery-search.ts';
import { type FoundObject, findObjects } from '../../../features/delivery-log/find-objects.ts';
import { utcText } from '../../../platform/iso-time.ts';
import { isPublicId } from '../../../platform/public-ids.ts';
import { invalidValue, type RequestError } from '../../../platform/request-input.ts';
import { PAGES, searchOf } from '../access/page-access.ts';
import { orShown } from '../access/page-error.ts';
import { sealSearch } from '../access/private-search.ts';
import type { Viewer } from '../access/viewer.ts';
import { csrfField } from '../components/form.ts';
import { noticeBox } from '../components/notice.ts';
import { pager } from '../components/pager.ts';
import { emptyState } from '../components/table.ts';
import { action } from '../kits/action.ts';
import { livePiece, viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup, nothing } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import {
  type DeliveryQuery,
  deliveryFilters,
  filterOf,
  queryText,
  readDeliveryQuery,
  SEARCH_FIELDS,
} from './delivery-filters.ts';
import { deliveryTable, SELECTION } from './delivery-table.ts';
import { foundObjects } from './found-objects.ts';

const SHOWN = 50;

const DONE = {
  retried: 'The next attempts are made now.',
  dropped: 'The deliveries are dropped. The next events of their ordering keys are sent.',
};

export const DELIVERY_PLACES = [
  {
    path: '/portal/w/:wabaId/deliveries',
    access: PAGES.member,
    changing: PAGES.admin,
    active: 'deliveries',
    title: 'Deliveries',
    lead: 'One event for one endpoint, the newest first. Open a delivery to see its attempts with request and response.',
  },
  {
    path: '/portal/operator/deliveries',
    access: PAGES.operator,
    changing: PAGES.operator,
    active: 'operator/deliveries',
    title: 'All deliveries',
    lead: 'One event for one endpoint, of every WABA, the newest first.',
  },
] as const;

export function placeOf({ wabaId }: Visit): (typeof DELIVERY_PLACES)[number] {
  return DELIVERY_PLACES[wabaId === null ? 1 : 0];
}

function listPath(visit: Visit): string {
  return visit.at(placeOf(visit).path);
}

type Found = {
  query: DeliveryQuery;
  cursor: string;
  search: DeliverySearch | null;
  objects: FoundObject[];
  error: RequestError | null;
};

/** The lists with their filters. Without a cursor they follow what happens, where scripts run. */
export function deliveryLists(app: PortalApp, context: PortalContext): void {
  for (const { path, access, active, title, lead } of DELIVERY_PLACES) {
    viewPage(app, context, {
      path,
      access,
      active,
      view: async (visit) => ({ title, lead, ...(await listView(visit)) }),
    });
    action(app, context, {
      path: `${path}/search`,
      access: searchOf(access),
      fields: SEARCH_FIELDS,
      act: async (visit) => searchHref(visit),
    });
    livePiece(app, context, {
      path: `${path}/rows`,
      access,
      piece: async (visit) => resultOf(visit, await find(visit)),
    });
  }
}

async function listView(visit: Visit): Promise<Omit<PageView, 'title'>> {
  const { context, wabaId } = visit;
  const found = await find(visit);
  const { query, cursor, error } = found;
  const path = listPath(visit);
  const endpoints = wabaId === null ? null : await listEndpoints(context.database, wabaId);
  const isLive = cursor === '' && error === null && query.until === '';
  const table = resultOf(visit, found);
  const live = html`<div id="delivery-rows" data-live="${path}/rows${queryText(query)}" data-live-ms="3000">${table}</div>`;
  return {
    actions: isLive && liveSwitch(`${path}${queryText(query)}`),
    assets: ['webhooks.css'],
    done: DONE,
    error,
    notice: error !== null && error.param === null ? { kind: 'error', text: error.message } : null,
    body: html`${deliveryFilters(visit.viewer, { action: path, query, endpoints, error })}${isLive ? live : table}`,
  };
}

/** The address that the form of the list leads to, in which no phone number stands. */
function searchHref(visit: Visit): string {
  const query = readDeliveryQuery(visit, visit.request.body);
  const isOpen = query.id === '' || isPublicId(query.id);
  const search = isOpen ? '' : sealSearch(visit.request, query.id);
  return `${listPath(visit)}${queryText({ ...query, search })}`;
}

function liveSwitch(href: string): Markup {
  return html`<label class="check live-switch"><input type="checkbox" data-live-switch="delivery-rows" checked> Follow live</label><noscript><a class="button" href="${href}">Reload</a></noscript>`;
}

async function find(visit: Visit): Promise<Found> {
  const { context, request } = visit;
  const query = readDeliveryQuery(visit, request.query);
  const cursor = visit.query('cursor');
  return await orShown<Found>(
    async () => {
      if (query.search !== '' && query.id === '') throw searchOfOthers();
      const wabaId = visit.wabaId ?? wabaAskedFor(visit.viewer, query);
      const before = positionOf(visit, query, cursor);
      const filter = filterOf(query, context.now());
      const search = await searchDeliveries(context, wabaId, filter, { before, limit: SHOWN });
      const objects = query.id === '' ? [] : await findObjects(context.database, wabaId, query.id);
      const action = query.id === '' ? 'deliveries.listed' : 'deliveries.searched';
      const shown = visit.wabaId === null ? search.deliveries.map((one) => one.wabaId) : [visit.wabaId];
      await visit.noteListRead(action, shown);
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

function cursorScope({ wabaId }: Visit, query: DeliveryQuery): [string | null, string, string] {
  return [wabaId, 'portal deliveries', queryText(query)];
}

function positionOf(visit: Visit, query: DeliveryQuery, cursor: string): DeliveryPosition | null {
  if (cursor === '') return null;
  const [day, atMicros, id] = visit.context.cursors.decode(cursorScope(visit, query), cursor) ?? [];
  if (day === undefined || atMicros === undefined || id === undefined) {
    throw invalidValue('This link is no longer valid: search again from the first page.');
  }
  return { day, atMicros, id };
}

function resultOf(visit: Visit, found: Found): Markup {
  const { query, cursor, search, objects } = found;
  if (search === null) return nothing;
  const { deliveries, next, searchedTo } = search;
  const { cursors } = visit.context;
  const path = listPath(visit);
  const nextHref =
    next === null
      ? null
      : `${path}${queryText(query, { cursor: cursors.encode(cursorScope(visit, query), [next.day, next.atMicros, next.id]) })}`;
  const isSelectable = visit.mayChange && deliveries.some(({ state }) => state === 'pending');
  const table =
    deliveries.length === 0
      ? nothingFound(found, visit)
      : deliveryTable({
          viewer: visit.viewer,
          deliveries,
          now: visit.now,
          hrefOf: (id, wabaId) => `/portal/w/${encodeURIComponent(wabaId)}/deliveries/${id}`,
          withOwner: visit.wabaId === null,
          withEndpoint: true,
          isSelectable,
        });
  const further =
    searchedTo !== null &&
    noticeBox({
      kind: 'information',
      text: html`Searched back to ${utcText(searchedTo)}. <a href="${nextHref ?? path}">Search further back</a>`,
    });
  const selection = isSelectable && selectionForm(visit, queryText(query, { cursor }));
  return html`${foundObjects(objects)}${selection}${table}${further}${pager({ firstHref: cursor === '' ? null : `${path}${queryText(query)}`, nextHref: searchedTo === null ? nextHref : null })}`;
}

/** What can be done to the deliveries that are selected in the table. Those of several WABAs are not dropped together. */
function selectionForm(visit: Visit, filters: string): Markup {
  const to = (change: string) => `${listPath(visit)}/selected/${change}${filters}`;
  return html`<form method="post" id="${SELECTION}" action="${to('retry')}" class="selection buttons">${csrfField(visit.viewer)}<label class="check" data-select-all hidden><input type="checkbox"> Select all</label><span class="faint">Selected deliveries:</span> <button>Retry now</button>${visit.wabaId !== null && html`<button class="danger" formaction="${to('drop')}">Drop</button>`}</form>`;
}

export function backToList(visit: Visit, more: Readonly<Record<string, string>> = {}): string {
  const query = readDeliveryQuery(visit, visit.request.query);
  return `${listPath(visit)}${queryText(query, { cursor: visit.query('cursor'), ...more })}`;
}

function nothingFound({ query, search }: Found, visit: Visit): Markup {
  if (search?.searchedTo) return nothing;
  const link = (href: string, label: string) => html`<a class="button" href="${href}">${label}</a>`;
  if (queryText(query) !== '') {
    const all = link(listPath(visit), 'Show all');
    return emptyState('Nothing found', 'No delivery matches these filters.', all);
  }
  const test =
    visit.wabaId !== null &&
    link(visit.at('/portal/w/:wabaId/endpoints'), 'Send a test event from an endpoint');
  const text = 'A delivery appears here as soon as an event is sent to an endpoint.';
  return emptyState('No deliveries within seven days', text, test);
}
