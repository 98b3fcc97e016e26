import type { GivenDeliveryFilter } from '../../../deliveries/search/delivery-input.ts';
import type { FormValues } from '../form-values.ts';

const HOUR_MS = 3_600_000;

/** Time ranges to choose from; `7d` is what is looked at when nothing is chosen. */
export const RANGES = [
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

/** The filters as the address has them. */
export type DeliveryQuery = {
  state: string;
  eventType: string;
  endpointId: string;
  wabaId: string;
  range: string;
  since: string;
  until: string;
  answer: string;
  id: string;
};

const NAMES = [
  'state',
  'eventType',
  'endpointId',
  'wabaId',
  'range',
  'since',
  'until',
  'answer',
  'id',
] as const satisfies readonly (keyof DeliveryQuery)[];

/** Reads the filters of an address, whatever is in it. */
export function readDeliveryQuery(query: FormValues): DeliveryQuery {
  return Object.fromEntries(NAMES.map((name) => [name, query.text(name).trim()])) as DeliveryQuery;
}

/** The filters as an address, those that are set; '' without any. */
export function queryText(query: DeliveryQuery, more: Readonly<Record<string, string>> = {}): string {
  const set = NAMES.filter((name) => query[name] !== '').map((name): [string, string] => [name, query[name]]);
  const text = new URLSearchParams([...set, ...Object.entries(more)]).toString();
  return text === '' ? '' : `?${text}`;
}

/** What the filters ask for. Times of the form are UTC; what is no time becomes one that is refused. */
export function filterOf(query: DeliveryQuery, nowMs: number): GivenDeliveryFilter {
  const { state, eventType, endpointId, answer, id, range } = query;
  const rangeMs = RANGE_MS[range];
  const ofRange = rangeMs === undefined ? undefined : new Date(nowMs - rangeMs);
  const since = query.since === '' ? (range === 'all' ? new Date(0) : ofRange) : timeIn(query.since);
  const until = query.until === '' ? undefined : timeIn(query.until);
  return { state, eventType, endpointId, answer, id, since, until };
}

/** A `datetime-local` value, or whatever somebody put there. */
function timeIn(text: string): Date {
  return new Date(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?$/.test(text) ? `${text}Z` : text);
}
