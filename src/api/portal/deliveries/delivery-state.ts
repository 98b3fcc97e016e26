import type { DeliveryState } from '../../../deliveries/log/delivery-filter.ts';
import { badge } from '../components/badge.ts';
import { html, type Markup } from '../markup.ts';

/** How a delivery stands, in a word. */
export function deliveryBadge(state: DeliveryState, attempts: number): Markup {
  if (state === 'delivered') return badge('good', 'Delivered');
  if (state === 'failed') return badge('bad', 'Failed');
  if (state === 'dropped') return badge('off', 'Dropped');
  return attempts === 0 ? badge('waiting', 'Pending') : badge('waiting', 'Retrying');
}

/** The response to the last attempt: a code, or the class of the error; the whole text in the title. */
export function answerText(delivery: { lastStatusCode: number | null; lastError: string | null }): Markup {
  const { lastStatusCode, lastError } = delivery;
  if (lastStatusCode !== null)
    return html`<span class="mono" title="${lastError ?? ''}">${lastStatusCode}</span>`;
  if (lastError === null) return html`<span class="faint">–</span>`;
  const errorClass = /^[a-z_]{1,24}(?=: )/.exec(lastError)?.[0];
  return html`<span class="mono" title="${lastError}">${errorClass ?? shortened(lastError)}</span>`;
}

const SHOWN_CHARS = 28;

function shortened(text: string): string {
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS - 1).toWellFormed()}…` : text;
}
