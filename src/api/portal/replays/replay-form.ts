import type { AccountError } from '../../../platform/account-error.ts';
import { EVENT_TYPES } from '../../../platform/event-type.ts';
import { shownUrl } from '../../../platform/http/shown-url.ts';
import type { ReplayCount } from '../../../replays/replay-count.ts';
import { REPLAYABLE_STATES } from '../../../replays/replay-selection.ts';
import type { Viewer } from '../access/viewer.ts';
import { checkboxes, postForm, radios, selectField, textArea, textField } from '../components/form.ts';
import { noticeBox } from '../components/notice.ts';
import { statRow } from '../components/stat.ts';
import { dataTable } from '../components/table.ts';
import { utcText } from '../components/time.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { ReplayFormValues } from './replay-form-values.ts';

type FormView = {
  viewer: Viewer;
  /** Where the replays of the WABA are. */
  path: string;
  values: ReplayFormValues;
  endpoints: readonly { id: string; url: string; description: string }[];
  error: AccountError | null;
};

/** Step 1: what is to be sent again. */
export function chooseForm({ viewer, path, values, endpoints, error }: FormView): Markup {
  const about = (param: string) => (error !== null && error.param === param ? error.message : null);
  const named = endpoints.map(({ id, url, description }) => ({
    value: id,
    label: `${id}: ${
      description ||
      shownUrl(url)
        .replace(/^https?:\/\//, '')
        .slice(0, 60)
    }`,
  }));
  const filter = html`
${selectField({ label: 'Endpoint', name: 'endpointId', value: values.endpointId, options: [{ value: '', label: 'All' }, ...named], error: about('endpointId') })}
<div class="columns">${textField({ label: 'Created from (UTC)', name: 'from', type: 'datetime-local', value: values.from, error: about('from') })}
${textField({ label: 'To (UTC)', name: 'to', type: 'datetime-local', value: values.to, error: about('to') })}</div>
<div class="columns">
${checkboxes({ label: 'Status', name: 'states', values: values.states, options: plain(REPLAYABLE_STATES), hint: 'not_sent: events that the endpoint subscribes to now and never had, for example because it is newer. None ticked: all.', error: about('states') })}
${checkboxes({ label: 'Event types', name: 'eventTypes', values: values.eventTypes, options: plain(EVENT_TYPES), hint: 'None ticked: all but test.', error: about('eventTypes') })}</div>`;
  const ids = textArea({
    label: 'Delivery ids',
    name: 'ids',
    rows: 4,
    value: values.ids,
    maxLength: 60_000,
    hint: 'dlv_…, up to 1,000, one to a line.',
    error: about('deliveryIds'),
  });
  const ways = [
    { value: 'filter', label: 'All deliveries that match the filters below' },
    { value: 'ids', label: 'The deliveries with the ids below' },
  ];
  return postForm(
    viewer,
    `${path}/new`,
    html`<div class="card">${radios({ label: 'Selection', name: 'by', value: values.by, options: ways })}</div>
<div class="card"><h2>Filters</h2>${filter}</div><div class="card"><h2>Or a list</h2>${ids}</div>
<div class="buttons"><button class="primary">Dry run</button><a class="button" href="${path}">Cancel</a></div>`,
  );
}

function plain(names: readonly string[]) {
  return names.map((name) => ({ value: name, label: name }));
}

/** Step 2: what that would be. The selection travels in hidden fields, so that what starts is what was counted. */
export function countedView(view: FormView & { count: ReplayCount }): Markup {
  const { viewer, path, values, count, endpoints } = view;
  const { open, noBody, endpointGone } = count.skipped;
  const passedOver = [
    [open, 'still pending'],
    [noBody, 'waiting for catalog data'],
    [endpointGone, 'of a deleted endpoint'],
  ] as const;
  const reasons = passedOver
    .filter(([number]) => number > 0)
    .map(([number, why]) => `${number.toLocaleString('en-US')} ${why}`);
  const urls = new Map(endpoints.map(({ id, url }) => [id, shownUrl(url)]));
  const hidden = hiddenFields(values);
  const total = count.deliveries.toLocaleString('en-US');
  const start = html`${hidden}<button class="primary">Send ${total} ${count.deliveries === 1 ? 'event' : 'events'} again</button>`;
  const change = html`${hidden}<input type="hidden" name="change" value="1"><button>Change the selection</button>`;
  return html`${statRow([
    { label: 'To be sent', value: total },
    {
      label: 'Skipped',
      value: (open + noBody + endpointGone).toLocaleString('en-US'),
      note: reasons.join(', ') || 'nothing',
    },
    { label: 'Oldest', value: shortTime(count.oldest) },
    { label: 'Newest', value: shortTime(count.newest) },
  ])}
<div class="columns">${countTable('By event type', 'Event type', count.byType, (name) => html`<code>${name}</code>`)}${countTable('By endpoint', 'Endpoint', count.byEndpoint, (id) => html`${id} <span class="faint break">${urls.get(id)}</span>`)}</div>
${count.deliveries === 0 && noticeBox({ kind: 'information', text: 'This selection has no deliveries to send.' })}
<p class="lead">They have a lower priority than new events, the same body and webhook-id, and the header X-Service-Replay. A server that deduplicates by webhook-id ignores them.</p>
<div class="buttons">${count.deliveries > 0 && postForm(viewer, path, start)}${postForm(viewer, `${path}/new`, change)}</div>`;
}

function shortTime(at: Date | null): Child {
  return at === null ? '–' : html`<time class="small" datetime="${at.toISOString()}">${utcText(at)}</time>`;
}

function countTable(
  caption: string,
  label: string,
  counts: Readonly<Record<string, number>>,
  nameOf: (name: string) => Child,
): Markup {
  const rows = Object.entries(counts).map(([name, number]): Child[] => [
    nameOf(name),
    number.toLocaleString('en-US'),
  ]);
  return rows.length === 0
    ? html``
    : dataTable(caption, [{ label }, { label: 'Events', kind: 'number' }], rows);
}

function hiddenFields({ by, endpointId, from, to, eventTypes, states, ids }: ReplayFormValues): Markup {
  const single = { by, endpointId, from, to, ids };
  const several = { eventTypes, states };
  return html`${Object.entries(single).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}${Object.entries(several).flatMap(([name, values]) => values.map((value) => html`<input type="hidden" name="${name}" value="${value}">`))}`;
}
