import type { FastifyReply, FastifyRequest } from 'fastify';
import type { DeliveryPosition } from '../../../deliveries/log/delivery-scan.ts';
import { type DeliverySearch, searchDeliveries } from '../../../deliveries/search/delivery-search.ts';
import { listEndpoints } from '../../../endpoints/store.ts';
import { AccountError, invalidValue } from '../../../platform/account-error.ts';
import { sendPage } from '../access/send-page.ts';
import { type Viewer, viewerOf } from '../access/viewer.ts';
import { emptyState } from '../components/empty-state.ts';
import { noticeBox } from '../components/notice.ts';
import { pager } from '../components/pager.ts';
import { utcText } from '../components/time.ts';
import { formValues } from '../form-values.ts';
import { html, type Markup } from '../markup.ts';
import type { WabaInView } from '../navigation.ts';
import type { PortalContext } from '../portal-app.ts';
import { deliveryFilters } from './delivery-filters.ts';
import { type DeliveryQuery, filterOf, queryText, readDeliveryQuery } from './delivery-query.ts';
import { deliveryTable } from './delivery-table.ts';

const SHOWN = 50;

/** Whose deliveries a list shows: those of a WABA, or (null) everybody's, for operators. */
export type DeliveryScope = { waba: WabaInView | null; path: string; active: string };

type Found = {
  query: DeliveryQuery;
  cursor: string;
  search: DeliverySearch | null;
  error: AccountError | null;
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
  const viewer = viewerOf(request);
  const endpoints = waba === null ? null : await listEndpoints(context.database, waba.wabaId);
  const isLive = cursor === '' && error === null && query.until === '';
  const table = resultOf(context, scope, found);
  const live = html`<div id="delivery-rows" data-live="${path}/rows${queryText(query)}" data-live-ms="3000">${table}</div>`;
  return sendPage(
    reply,
    {
      title: waba === null ? 'All deliveries' : 'Deliveries',
      ...{ viewer, waba, active },
      lead:
        waba === null
          ? 'One event for one endpoint, of every WABA, the newest first.'
          : 'One event for one endpoint, the newest first. Open a delivery to see its attempts with request and response.',
      actions: isLive && liveSwitch(`${path}${queryText(query)}`),
      assets: ['webhooks.css'],
      notice: error !== null && error.param === null ? { kind: 'error', text: error.message } : null,
      body: html`${deliveryFilters({ action: path, query, endpoints, error })}${isLive ? live : table}`,
    },
    error === null ? 200 : 422,
  );
}

/** The piece of the list that a script fetches again and again. */
export async function sendDeliveryRows(
  request: FastifyRequest,
  reply: FastifyReply,
  context: PortalContext,
  scope: DeliveryScope,
): Promise<FastifyReply> {
  const found = await find(request, context, scope);
  return reply.type('text/html; charset=utf-8').send(resultOf(context, scope, found).toString());
}

function liveSwitch(href: string): Markup {
  return html`<label class="check live-switch"><input type="checkbox" data-live-switch="delivery-rows" checked> Follow live</label><noscript><a class="button" href="${href}">Reload</a></noscript>`;
}

async function find(request: FastifyRequest, context: PortalContext, scope: DeliveryScope): Promise<Found> {
  const given = formValues(request.query);
  const query = readDeliveryQuery(given);
  const cursor = given.text('cursor');
  try {
    const wabaId = scope.waba === null ? wabaAskedFor(viewerOf(request), query) : scope.waba.wabaId;
    const before = positionOf(context, scope, query, cursor);
    const filter = filterOf(query, context.now());
    const search = await searchDeliveries(context, wabaId, filter, { before, limit: SHOWN });
    return { query, cursor, search, error: null };
  } catch (error) {
    if (!(error instanceof AccountError)) throw error;
    return { query, cursor, search: null, error };
  }
}

/** Only operators come to a list of all. */
function wabaAskedFor({ role }: Viewer, { wabaId }: DeliveryQuery): string | null {
  if (role !== 'operator') throw new Error('a list of all deliveries is for operators');
  if (wabaId === '') return null;
  if (/^\d{1,64}$/.test(wabaId)) return wabaId;
  throw invalidValue('The id of a WABA has digits only.', 'wabaId');
}

function scopeOf({ waba }: DeliveryScope, query: DeliveryQuery): [string | null, string, string] {
  return [waba?.wabaId ?? null, 'portal deliveries', queryText(query)];
}

function positionOf(
  { cursors }: PortalContext,
  scope: DeliveryScope,
  query: DeliveryQuery,
  cursor: string,
): DeliveryPosition | null {
  if (cursor === '') return null;
  const [day, atMicros, id] = cursors.decode(scopeOf(scope, query), cursor) ?? [];
  if (day === undefined || atMicros === undefined || id === undefined) {
    throw invalidValue('This link is no longer valid: search again from the first page.');
  }
  return { day, atMicros, id };
}

function resultOf(context: PortalContext, scope: DeliveryScope, found: Found): Markup {
  const { query, cursor, search } = found;
  if (search === null) return html``;
  const { deliveries, next, searchedTo } = search;
  const { path, waba } = scope;
  const nextHref =
    next === null
      ? null
      : `${path}${queryText(query, { cursor: context.cursors.encode(scopeOf(scope, query), [next.day, next.atMicros, next.id]) })}`;
  const table =
    deliveries.length === 0
      ? nothingFound(found, scope)
      : deliveryTable({
          deliveries,
          now: new Date(context.now()),
          hrefOf: (id, wabaId) => `/portal/w/${encodeURIComponent(wabaId)}/deliveries/${id}`,
          withOwner: waba === null,
          withEndpoint: true,
        });
  const further =
    searchedTo !== null &&
    noticeBox({
      kind: 'information',
      text: html`Searched back to ${utcText(searchedTo)}. <a href="${nextHref ?? path}">Search further back</a>`,
    });
  return html`${table}${further}${pager({ firstHref: cursor === '' ? null : `${path}${queryText(query)}`, nextHref: searchedTo === null ? nextHref : null })}`;
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
