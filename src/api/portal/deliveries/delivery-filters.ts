import { DELIVERY_STATES } from '../../../features/delivery-log/deliveries.ts';
import type { GivenDeliveryFilter } from '../../../features/delivery-log/delivery-filter.ts';
import { ALL_UPSTREAM, EVENT_TYPES, upstreamTypeOf } from '../../../platform/event-type.ts';
import type { RequestError } from '../../../platform/request-input.ts';
import { KNOWN_FIELDS } from '../../../platform/upstream-fields.ts';
import { openSearch } from '../access/private-search.ts';
import type { Viewer } from '../access/viewer.ts';
import { csrfField, selectField, textField } from '../components/form.ts';
import { type EndpointNames, endpointOption } from '../endpoints/endpoint-status.ts';
import { formLine, formValues } from '../form-values.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';

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
] as const;

export type DeliveryQuery = Record<(typeof NAMES)[number], string>;

export const SEARCH_FIELDS = Object.fromEntries(NAMES.map((name) => [name, formLine()]));

export function readDeliveryQuery({ request }: Visit, given: unknown): DeliveryQuery {
  const values = formValues(given);
  const query = Object.fromEntries(NAMES.map((name) => [name, values.text(name).trim()])) as DeliveryQuery;
  const { search } = query;
  return search === '' ? query : { ...query, id: openSearch(request, search) ?? '' };
}

/** The filters as an address, those that are set; '' without any. */
export function queryText(query: DeliveryQuery, more: Readonly<Record<string, string>> = {}): string {
  const left = query.search === '' ? 'search' : 'id';
  const set = NAMES.filter((name) => name !== left && query[name] !== '').map((name): [string, string] => [
    name,
    query[name],
  ]);
  const others = Object.entries(more).filter(([, value]) => value !== '');
  const text = new URLSearchParams([...set, ...others]).toString();
  return text === '' ? '' : `?${text}`;
}

const HOUR_MS = 3_600_000;

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

/** What the filters ask for. Times of the form are UTC; what is no time becomes one that is refused. */
export function filterOf(query: DeliveryQuery, nowMs: number): GivenDeliveryFilter {
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

const STATE_LABELS = {
  pending: 'Pending or retrying',
  delivered: 'Delivered',
  failed: 'Failed',
  dropped: 'Dropped',
};

type DeliveryFilters = {
  /** The path of the list. */
  action: string;
  query: DeliveryQuery;
  endpoints: readonly EndpointNames[] | null;
  error: RequestError | null;
};

/** The form over the list: it leads to an address, in which an id of upstream stands sealed. Without `endpoints`, operators name a WABA instead. */
export function deliveryFilters(
  viewer: Viewer,
  { action, query, endpoints, error }: DeliveryFilters,
): Markup {
  const about = (param: string) => (error !== null && error.param === param ? error.message : null);
  const isMore = query.since !== '' || query.until !== '' || query.response !== '';
  return html`<form method="post" action="${action}/search" class="delivery-filters" role="search" aria-label="Deliveries">${csrfField(viewer)}<div class="filters">
${textField({ label: 'Any id', name: 'id', type: 'search', placeholder: 'event, message …', value: query.id, maxLength: 512, error: about('id') })}
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
  endpoints: readonly EndpointNames[],
  error: string | null,
): Markup {
  const known = endpoints.map(endpointOption);
  const isGone = query.endpointId !== '' && !known.some(({ value }) => value === query.endpointId);
  const gone = isGone ? [{ value: query.endpointId, label: query.endpointId.slice(0, 18) }] : [];
  const options = [{ value: '', label: 'All' }, ...known, ...gone];
  return selectField({ label: 'Endpoint', name: 'endpointId', value: query.endpointId, options, error });
}
