import type { EndpointView } from '../../../accounts/endpoint-view.ts';
import { detailList } from '../components/table.ts';
import { exactTime } from '../components/time.ts';
import { type Child, html, type Markup } from '../markup.ts';

type Defaults = { retryScheduleSeconds: readonly number[]; timeoutMs: number };

const PROFILES = { standard: 'Standard Webhooks', github: 'GitHub', stripe: 'Stripe' };

/** Every setting of an endpoint, also those that were left to the defaults. */
export function settingsList(endpoint: EndpointView, defaults: Defaults): Markup {
  const { eventTypes, phoneNumberIds, customHeaderNames, wantedOrderScope, orderScope } = endpoint;
  return detailList([
    ['Id', html`<code>${endpoint.id}</code>`],
    ['Event types', eventTypes === null ? byDefault('all') : eventTypes.join(', ')],
    [
      'Phone numbers',
      phoneNumberIds === null
        ? byDefault('all')
        : html`<span class="mono">${phoneNumberIds.join(', ')}</span>`,
    ],
    [
      'Order',
      wantedOrderScope === null
        ? `by ${orderScope}`
        : html`by ${orderScope}; by ${wantedOrderScope} once nothing of the present order is open, or while it is paused`,
    ],
    ['Form of the signature', PROFILES[endpoint.signatureProfile]],
    ['Retry schedule', scheduleText(endpoint.retryScheduleSeconds, defaults)],
    [
      'Time-out',
      endpoint.timeoutMs === null
        ? byDefault(`${defaults.timeoutMs / 1_000} s`)
        : `${endpoint.timeoutMs / 1_000} s`,
    ],
    ['Requests at once', endpoint.maxInFlight ?? byDefault('no limit')],
    ['Requests per second', endpoint.rateLimitPerSecond ?? byDefault('no limit')],
    ['Block limit', blockLimitText(endpoint.blockLimitSeconds)],
    ['Headers of your own', headerText(customHeaderNames)],
    ['Created', exactTime(endpoint.createdAt)],
    ['Changed', exactTime(endpoint.updatedAt)],
  ]);
}

function scheduleText(seconds: readonly number[] | null, { retryScheduleSeconds }: Defaults): Child {
  return seconds === null ? byDefault(`${retryScheduleSeconds.join(', ')} s`) : `${seconds.join(', ')} s`;
}

function blockLimitText(seconds: number | null): Child {
  if (seconds === null) return byDefault('the installation’s');
  return seconds === 0 ? 'never: an event that fails blocks its key' : `${seconds} s`;
}

function headerText(names: readonly string[] | null): Child {
  if (names === null) return 'cannot be read: the key that they were encrypted with is missing';
  return names.length === 0 ? byDefault('none') : html`<span class="mono">${names.join(', ')}</span>`;
}

function byDefault(text: string): Markup {
  return html`${text} <span class="faint">(default)</span>`;
}
