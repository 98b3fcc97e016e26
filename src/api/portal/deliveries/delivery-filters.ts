import { DELIVERY_STATES } from '../../../deliveries/search/delivery-input.ts';
import type { AccountError } from '../../../platform/account-error.ts';
import { EVENT_TYPES } from '../../../platform/event-type.ts';
import { shownUrl } from '../../../platform/http/shown-url.ts';
import { selectField, textField } from '../components/form.ts';
import { html, type Markup } from '../markup.ts';
import { type DeliveryQuery, RANGES } from './delivery-query.ts';

const STATE_LABELS = {
  pending: 'Pending or retrying',
  delivered: 'Delivered',
  failed: 'Failed',
  dropped: 'Dropped',
};

type FiltersView = {
  action: string;
  query: DeliveryQuery;
  /** Null: operators, who name a WABA instead. */
  endpoints: readonly { id: string; url: string; description: string }[] | null;
  error: AccountError | null;
};

/** The form over the list; a GET, so that what it finds has an address. */
export function deliveryFilters({ action, query, endpoints, error }: FiltersView): Markup {
  const about = (param: string) => (error !== null && error.param === param ? error.message : null);
  const isMore = query.since !== '' || query.until !== '' || query.answer !== '';
  return html`<form method="get" action="${action}" class="delivery-filters" role="search" aria-label="Deliveries"><div class="filters">
${textField({ label: 'eventId, message id, webhook-id or delivery id', name: 'id', type: 'search', value: query.id, maxLength: 512, error: about('id') })}
${selectField({ label: 'Status', name: 'state', value: query.state, options: choices(DELIVERY_STATES, STATE_LABELS), error: about('state') })}
${selectField({ label: 'Event type', name: 'eventType', value: query.eventType, options: choices(EVENT_TYPES), error: about('eventType') })}
${endpoints === null ? wabaField(query, about) : endpointField(query, endpoints, about('endpointId'))}
${selectField({ label: 'Time', name: 'range', value: query.range, options: RANGES })}
<div class="buttons"><button class="primary">Search</button><a class="button" href="${action}">Clear</a></div></div>
<details ${isMore && html`open`}><summary>More filters</summary><div class="filters">
${textField({ label: 'From (UTC)', name: 'since', type: 'datetime-local', value: query.since, error: about('since') })}
${textField({ label: 'To (UTC)', name: 'until', type: 'datetime-local', value: query.until, error: about('until') })}
${textField({ label: 'Response or error of an attempt', name: 'answer', value: query.answer, placeholder: '503, 5xx, timeout …', maxLength: 30, error: about('answer') })}
</div></details></form>`;
}

function choices(names: readonly string[], labels: Readonly<Record<string, string>> = {}) {
  const named = names.map((name) => ({ value: name, label: labels[name] ?? name }));
  return [{ value: '', label: 'All' }, ...named];
}

function wabaField(query: DeliveryQuery, about: (param: string) => string | null): Markup {
  return html`${textField({ label: 'WABA', name: 'wabaId', value: query.wabaId, maxLength: 64, placeholder: 'all', error: about('wabaId') })}
${textField({ label: 'Endpoint', name: 'endpointId', value: query.endpointId, maxLength: 18, placeholder: 'all', error: about('endpointId') })}`;
}

function endpointField(
  query: DeliveryQuery,
  endpoints: NonNullable<FiltersView['endpoints']>,
  error: string | null,
): Markup {
  const known = endpoints.map(({ id, url, description }) => ({
    value: id,
    label: `${id}: ${
      description ||
      shownUrl(url)
        .replace(/^https?:\/\//, '')
        .slice(0, 60)
    }`,
  }));
  const isGone = query.endpointId !== '' && !known.some(({ value }) => value === query.endpointId);
  const gone = isGone ? [{ value: query.endpointId, label: query.endpointId.slice(0, 18) }] : [];
  const options = [{ value: '', label: 'All' }, ...known, ...gone];
  return selectField({ label: 'Endpoint', name: 'endpointId', value: query.endpointId, options, error });
}
