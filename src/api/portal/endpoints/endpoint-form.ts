import type { AccountError } from '../../../accounts/account-error.ts';
import { EVENT_TYPES } from '../../../domain/event-type.ts';
import type { Viewer } from '../access/viewer.ts';
import { checkboxes, postForm, radios, selectField, textArea, textField } from '../components/form.ts';
import { type Child, html, type Markup, nothing } from '../markup.ts';
import type { EndpointFormValues } from './endpoint-form-values.ts';

export type EndpointFormView = {
  viewer: Viewer;
  action: string;
  /** The button. */
  label: string;
  cancelHref: string;
  checkHref: string;
  values: EndpointFormValues;
  phoneNumbers: readonly { phoneNumberId: string; displayPhoneNumber: string }[];
  /** Of headers that are stored; their values are not shown. Null: they cannot be read. */
  headerNames: readonly string[] | null;
  defaults: { retryScheduleSeconds: readonly number[]; timeoutMs: number };
  error: AccountError | null;
  /** What the check of the URL says, when it was asked for. */
  urlCheck: Child;
};

const SCOPES = [
  { value: 'event', label: 'Event: what belongs together stays in order (recommended)' },
  { value: 'conversation', label: 'Conversation: all events of one customer, one after the other' },
  {
    value: 'endpoint',
    label: 'Endpoint: everything in order; an event that fails blocks all others until it steps aside',
  },
];

const PROFILES = [
  { value: 'standard', label: 'Standard Webhooks' },
  { value: 'github', label: 'GitHub (sha256=…)' },
  { value: 'stripe', label: 'Stripe (t=…,v1=…)' },
];

const ADVANCED = [
  'retryScheduleSeconds',
  'timeoutMs',
  'maxInFlight',
  'rateLimitPerSecond',
  'blockLimitSeconds',
  'customHeaders',
  'signatureProfile',
  'orderScope',
];

/** Every setting of an endpoint. */
export function endpointForm(view: EndpointFormView): Markup {
  return postForm(
    view.viewer,
    view.action,
    // Enter presses the first button of a form: without this one it would check the address.
    html`<button class="unseen" tabindex="-1" aria-hidden="true">${view.label}</button>
<div class="card">${whereFields(view)}</div>
<div class="card"><h2>What it receives</h2>${whatFields(view)}</div>
<details class="card" ${isAdvanced(view) && html`open`}><summary>Order, signature, retries, limits and headers</summary>
<div class="advanced">${howFields(view)}${headerFields(view)}</div></details>
<div class="buttons"><button class="primary">${view.label}</button><a class="button" href="${view.cancelHref}">Cancel</a></div>`,
  );
}

/** What was not left to the defaults must be in sight, and so must what is wrong. */
function isAdvanced({ values, error, headerNames }: EndpointFormView): boolean {
  const { retrySchedule, timeoutSeconds, maxInFlight, rateLimitPerSecond, blockLimitSeconds, newHeaders } =
    values;
  const texts = [
    retrySchedule,
    timeoutSeconds,
    maxInFlight,
    rateLimitPerSecond,
    blockLimitSeconds,
    newHeaders,
  ];
  const isDefault = values.orderScope === 'event' && values.signatureProfile === 'standard';
  const isWrong = error !== null && ADVANCED.includes(error.param ?? '');
  return isWrong || !isDefault || (headerNames ?? []).length > 0 || texts.some((text) => text !== '');
}

function problem({ error }: EndpointFormView, param: string): string | null {
  return error !== null && error.param === param ? error.message : null;
}

function whereFields(view: EndpointFormView): Markup {
  const { values, checkHref, urlCheck } = view;
  return html`<div class="url-field" data-check-url="${checkHref}">${textField({
    label: 'URL',
    name: 'url',
    type: 'url',
    value: values.url,
    required: true,
    placeholder: 'https://example.com/webhooks',
    hint: 'An https address that is reachable from the internet.',
    error: problem(view, 'url'),
  })}${(view.headerNames?.length ?? 0) > 0 && html`<p class="hint"><strong>Headers of your own are for this server only.</strong> Another host, port or scheme forgets them unless you enter them again below.</p>`}<div class="url-check" id="url-check" aria-live="polite">${urlCheck}</div>
<button name="check" value="1" class="check-button" formnovalidate>Check the address</button></div>
${textField({ label: 'Description', name: 'description', value: values.description, maxLength: 200, hint: 'For people, such as “orders to the warehouse”.', error: problem(view, 'description') })}`;
}

function whatFields(view: EndpointFormView): Markup {
  const { values, phoneNumbers } = view;
  const numbers = phoneNumbers.map(({ phoneNumberId, displayPhoneNumber }) => ({
    value: phoneNumberId,
    label: html`${displayPhoneNumber} <span class="mono faint">${phoneNumberId}</span>`,
  }));
  return html`<div class="columns">${checkboxes({
    label: 'Event types',
    name: 'eventTypes',
    hint: 'None ticked: all, also those to come.',
    values: values.eventTypes,
    options: EVENT_TYPES.filter((type) => type !== 'test').map((type) => ({
      value: type,
      label: html`<code>${type}</code>`,
    })),
    error: problem(view, 'eventTypes'),
  })}${
    numbers.length === 0
      ? nothing
      : checkboxes({
          label: 'Phone numbers',
          name: 'phoneNumberIds',
          hint: 'None ticked: all, also those to come.',
          values: values.phoneNumberIds,
          options: numbers,
          error: problem(view, 'phoneNumberIds'),
        })
  }</div>`;
}

function howFields(view: EndpointFormView): Markup {
  const { values, defaults } = view;
  const number = (label: string, name: keyof EndpointFormValues, param: string, hint: string) =>
    textField({
      label,
      name,
      value: String(values[name]),
      maxLength: 400,
      hint,
      error: problem(view, param),
    });
  return html`${radios({ label: 'Order', name: 'orderScope', value: values.orderScope, options: SCOPES, error: problem(view, 'orderScope') })}
<div class="columns">
${selectField({ label: 'Form of the signature', name: 'signatureProfile', value: values.signatureProfile, options: PROFILES, hint: 'Of the header X-Service-Signature; webhook-signature is always there.', error: problem(view, 'signatureProfile') })}
${number('Retry schedule (seconds)', 'retrySchedule', 'retryScheduleSeconds', `Waits before attempts 2, 3, … Default: ${defaults.retryScheduleSeconds.join(', ')}.`)}
${number('Time-out (seconds)', 'timeoutSeconds', 'timeoutMs', `For the whole answer. Default and most: ${defaults.timeoutMs / 1_000}.`)}
${number('Requests at once', 'maxInFlight', 'maxInFlight', 'From 1 to 500. Default: no limit of its own.')}
${number('Requests per second', 'rateLimitPerSecond', 'rateLimitPerSecond', 'From 1 to 10,000. Default: no limit.')}
${number('Block limit (seconds)', 'blockLimitSeconds', 'blockLimitSeconds', 'How long an event that fails may block others of its key; it then steps aside and keeps its retries. From 60 to 604,800; 0: never. Default: 900 for orders and for wider orders of events.')}
</div>`;
}

function headerFields(view: EndpointFormView): Markup {
  const { values, headerNames } = view;
  const stored =
    headerNames === null
      ? html`<p class="problem">The stored headers cannot be read: the key that they were encrypted with is missing.</p>`
      : headerNames.length === 0
        ? nothing
        : checkboxes({
            label: 'Remove headers',
            name: 'removedHeaders',
            hint: 'Their values are not shown. Those that are not ticked stay.',
            values: values.removedHeaders,
            options: headerNames.map((name) => ({ value: name, label: html`<code>${name}</code>` })),
          });
  return html`${stored}${textArea({
    label: 'Headers of your own',
    name: 'newHeaders',
    rows: 3,
    value: values.newHeaders,
    hint: 'Sent with each webhook, one “Name: value” to a line. Stored encrypted and never shown again.',
    error: problem(view, 'customHeaders'),
  })}`;
}
