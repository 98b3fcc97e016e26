import { listEndpoints } from '../../../engine/endpoint/store.ts';
import { REPLAYABLE_STATES, type ReplayCount } from '../../../features/replays/replay-selection.ts';
import { replayWorkflowId } from '../../../features/replays/replay-store.ts';
import {
  countReplay,
  type ReplayView,
  replayOf,
  replaysOf,
  startReplay,
  switchReplay,
} from '../../../features/replays/replays.ts';
import { ALL_UPSTREAM, EVENT_TYPES, upstreamTypeOf } from '../../../platform/event-type.ts';
import { shownUrl } from '../../../platform/http/outbound-url.ts';
import { utcText } from '../../../platform/iso-time.ts';
import type { RequestError } from '../../../platform/request-input.ts';
import { KNOWN_FIELDS } from '../../../platform/upstream-fields.ts';
import { PAGES, withoutFreshProof } from '../access/page-access.ts';
import type { Viewer } from '../access/viewer.ts';
import {
  actionButton,
  checkboxes,
  postForm,
  radios,
  selectField,
  textArea,
  textField,
} from '../components/form.ts';
import { noticeBox } from '../components/notice.ts';
import { dataTable, detailList, statRow } from '../components/table.ts';
import { exactTime, timeAgo } from '../components/time.ts';
import { workflowRow } from '../components/workflow-link.ts';
import { endpointOption } from '../endpoints/endpoint-status.ts';
import type { FormValues } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { type ListColumn, listPage } from '../kits/list-page.ts';
import { livePiece, viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import {
  NEW_REPLAY,
  REPLAY_FIELDS,
  type ReplayFormValues,
  readReplayForm,
  selectionOf,
} from './replay-form-values.ts';
import { progressView, replayBadge, selectionText } from './replay-view.ts';

export function replayPages(app: PortalApp, context: PortalContext): void {
  replayListPage(app, context);
  replayWizard(app, context);
  replayPage(app, context);
}

const LIST = '/portal/w/:wabaId/replays';

const COLUMNS: ListColumn<ReplayView>[] = [
  {
    label: 'Replay',
    kind: 'narrow',
    cell: ({ replayId }, { path }) => html`<a href="${path}/${replayId}">${replayId}</a>`,
  },
  { label: 'Status', kind: 'narrow', cell: ({ state }) => replayBadge(state) },
  { label: 'Selection', cell: selectionText },
  { label: 'Queued', kind: 'number', cell: ({ queued, total }) => `${number(queued)} of ${number(total)}` },
  { label: 'Skipped', kind: 'number', cell: ({ skipped }) => number(skipped) },
  { label: 'Requested by', cell: ({ requestedBy }) => requestedBy },
  { label: 'Started', kind: 'narrow', cell: ({ createdAt }, { now }) => timeAgo(createdAt, now) },
  { label: 'Finished', kind: 'narrow', cell: ({ finishedAt }, { now }) => timeAgo(finishedAt, now) },
];

function number(value: number): string {
  return value.toLocaleString('en-US');
}

function replayListPage(app: PortalApp, context: PortalContext): void {
  listPage(app, context, {
    path: LIST,
    access: PAGES.member,
    active: 'replays',
    title: 'Replays',
    columns: COLUMNS,
    lead: 'A replay sends events again: those that failed while a server was down, or all of a period.',
    add: { label: 'New replay', path: `${LIST}/new`, isPrimary: true },
    empty: {
      title: 'No replays yet',
      text: 'A replay sends deliveries again. It starts with a dry run, and you can pause and cancel it.',
    },
    pageSize: 50,
    find: async ({ waba }, wanted) => await replaysOf(context, waba.wabaId, wanted),
    positionOf: ({ replayId }) => [replayId],
  });
}

type Step = { values: ReplayFormValues; count?: ReplayCount; error?: RequestError };

function replayWizard(app: PortalApp, context: PortalContext): void {
  const place = { path: `${LIST}/new`, active: 'replays' };
  viewPage(app, context, {
    ...place,
    access: PAGES.admin,
    query: ['endpointId'],
    view: (visit) => {
      const endpointId = visit.query('endpointId').trim();
      return stepView(visit, { values: { ...NEW_REPLAY, endpointId } });
    },
  });
  const form = {
    active: 'replays',
    fields: REPLAY_FIELDS,
    refused: (visit: Visit, error: RequestError, given: FormValues) =>
      stepView(visit, { values: readReplayForm(given), error }),
  };
  action(app, context, {
    ...form,
    ...place,
    access: withoutFreshProof(PAGES.admin, 'it counts deliveries and changes nothing'),
    act: async (visit, given) => {
      const values = readReplayForm(given);
      if (given.text('change') !== '') return await stepView(visit, { values });
      const count = await countReplay(context, visit.waba.wabaId, selectionOf(values));
      return await stepView(visit, { values, count });
    },
  });
  action(app, context, {
    ...form,
    path: LIST,
    access: PAGES.admin,
    act: async (visit, given) => {
      const { tools, waba, viewer } = visit;
      const selection = selectionOf(readReplayForm(given));
      const { replayId } = await startReplay(tools, waba.wabaId, selection, viewer.email);
      return `${visit.path}/${replayId}`;
    },
  });
}

const FIELDS = ['endpointId', 'from', 'to', 'states', 'eventTypes', 'deliveryIds'];

async function stepView(visit: Visit, { values, count, error }: Step): Promise<PageView> {
  const { viewer, waba, context } = visit;
  const path = visit.at(LIST);
  const endpoints = await listEndpoints(context.database, waba.wabaId);
  const form = { viewer, path, values, error, endpoints };
  const isAtField = error !== undefined && FIELDS.includes(error.param ?? '');
  const text = isAtField ? 'The selection is not valid: see the field below.' : error?.message;
  return {
    title: count === undefined ? 'New replay' : 'Dry run',
    trail: [{ label: 'Replays', href: path }],
    lead:
      count === undefined
        ? 'Step 1 of 2: select deliveries. Nothing is sent before you have seen their number.'
        : 'Step 2 of 2: nothing has been sent yet.',
    assets: ['webhooks.css'],
    notice: text === undefined ? null : { kind: 'error', text },
    error: error ?? null,
    body: count === undefined ? chooseForm(form) : countedView({ ...form, count }),
  };
}

const PATH = `${LIST}/:id`;
const MAX_IDS_SHOWN = 20;

const DONE = {
  pause: 'The replay is paused.',
  resume: 'The replay is resumed.',
  cancel: 'The replay is cancelled. Its pending deliveries are dropped.',
};

function replayPage(app: PortalApp, context: PortalContext): void {
  const place = { access: PAGES.member, active: 'replays' };
  const find = async ({ waba, id }: Visit) => await replayOf(context, waba.wabaId, id);
  viewPage(app, context, {
    ...place,
    path: PATH,
    view: async (visit) => {
      const { path, viewer } = visit;
      const replay = await find(visit);
      const isOver =
        (replay.state === 'done' || replay.state === 'cancelled') && replay.outcomes.pending === 0;
      const progress = progressView(replay);
      return {
        title: `Replay ${replay.replayId}`,
        lead: selectionText(replay),
        trail: [{ label: 'Replays', href: visit.at(LIST) }],
        actions: visit.mayChange && buttons(viewer, path, replay),
        done: DONE,
        assets: ['webhooks.css'],
        body: html`${isOver ? progress : html`<div data-live="${path}/progress" data-live-ms="2000">${progress}</div>`}
<div class="card">${detailList(facts(visit, replay))}</div>`,
      };
    },
  });
  livePiece(app, context, {
    path: `${PATH}/progress`,
    access: PAGES.member,
    piece: async (visit) => progressView(await find(visit)),
  });
  for (const change of ['pause', 'resume', 'cancel'] as const) {
    action(app, context, {
      path: `${PATH}/${change}`,
      access: withoutFreshProof(PAGES.admin, 'it stops or continues a replay that exists'),
      act: async (visit) => {
        await switchReplay(visit.tools, visit.waba.wabaId, visit.id, change);
        return `${visit.at(PATH)}?done=${change}`;
      },
    });
  }
}

function buttons(viewer: Viewer, path: string, { state }: ReplayView): Markup | null {
  if (state === 'done' || state === 'cancelled') return null;
  const change =
    state === 'running'
      ? actionButton(viewer, `${path}/pause`, 'Pause')
      : actionButton(viewer, `${path}/resume`, 'Resume', 'primary');
  return html`${change}${actionButton(viewer, `${path}/cancel`, 'Cancel the replay', 'danger')}`;
}

function facts(visit: Visit, replay: ReplayView): [string, Child][] {
  const { deliveryIds } = replay.selection;
  const rows: [string, Child][] = [
    ['Requested by', replay.requestedBy],
    ['Started', exactTime(replay.createdAt)],
    ['Finished', exactTime(replay.finishedAt)],
  ];
  if (deliveryIds !== null && deliveryIds.length > 0) {
    const base = `/portal/w/${encodeURIComponent(replay.wabaId)}/deliveries`;
    const links = deliveryIds
      .slice(0, MAX_IDS_SHOWN)
      .map((id) => html`<a class="mono" href="${base}/${id}">${id}</a><br>`);
    const more = deliveryIds.length - links.length;
    rows.push(['Deliveries', html`${links}${more > 0 && `and ${more} more`}`]);
  }
  return [...rows, ...workflowRow(visit, replayWorkflowId(replay.replayId))];
}

type FormView = {
  viewer: Viewer;
  path: string;
  values: ReplayFormValues;
  endpoints: readonly { id: string; url: string; description: string }[];
  error: RequestError | undefined;
};

/** A field that has no name here can be selected by a link. */
function furtherTypes(selected: readonly string[]) {
  const core: readonly string[] = EVENT_TYPES;
  const known: string[] = [ALL_UPSTREAM, ...KNOWN_FIELDS.map(upstreamTypeOf)];
  const others = selected.filter((type) => !core.includes(type) && !known.includes(type));
  return { summary: 'Other fields of the upstream platform', options: plain([...known, ...others]) };
}

function chooseForm({ viewer, path, values, endpoints, error }: FormView): Markup {
  const about = (param: string) => (error?.param === param ? error.message : null);
  const named = endpoints.map(endpointOption);
  const filter = html`
${selectField({ label: 'Endpoint', name: 'endpointId', value: values.endpointId, options: [{ value: '', label: 'All' }, ...named], error: about('endpointId') })}
<div class="columns">${textField({ label: 'Created from (UTC)', name: 'from', type: 'datetime-local', value: values.from, error: about('from') })}
${textField({ label: 'To (UTC)', name: 'to', type: 'datetime-local', value: values.to, error: about('to') })}</div>
<div class="columns">
${checkboxes({ label: 'Status', name: 'states', values: values.states, options: plain(REPLAYABLE_STATES), hint: 'not_sent: events that the endpoint subscribes to now and never had, for example because it is newer. None selected: all.', error: about('states') })}
${checkboxes({ label: 'Event types', name: 'eventTypes', values: values.eventTypes, options: plain(EVENT_TYPES), more: furtherTypes(values.eventTypes), hint: 'None selected: all but test.', error: about('eventTypes') })}</div>`;
  const ids = textArea({
    label: 'Delivery ids',
    name: 'ids',
    rows: 4,
    value: values.ids,
    maxLength: 50_000,
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
function countedView(view: FormView & { count: ReplayCount }): Markup {
  const { viewer, path, values, count, endpoints } = view;
  const { pending, noBody, endpointGone } = count.skipped;
  const passedOver = [
    [pending, 'still pending'],
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
      value: (pending + noBody + endpointGone).toLocaleString('en-US'),
      note: reasons.join(', '),
    },
    { label: 'Oldest', value: shortTime(count.oldest) },
    { label: 'Newest', value: shortTime(count.newest) },
  ])}
<div class="columns">${countTable('By event type', 'Event type', count.byType, (name) => html`<code>${name}</code>`)}${countTable('By endpoint', 'Endpoint', count.byEndpoint, (id) => html`${id} <span class="faint break">${urls.get(id)}</span>`)}</div>
${count.deliveries === 0 && noticeBox({ kind: 'information', text: 'This selection has no deliveries to send.' })}
<p class="lead">Replayed events have a lower priority than new ones, the same body and webhook-id, and the header X-Service-Replay. A server that deduplicates by webhook-id ignores them.</p>
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
  return rows.length === 0 ? html`` : dataTable(caption, [label, { label: 'Events', kind: 'number' }], rows);
}

function hiddenFields({ by, endpointId, from, to, eventTypes, states, ids }: ReplayFormValues): Markup {
  const single = { by, endpointId, from, to, ids };
  const several = { eventTypes, states };
  return html`${Object.entries(single).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}${Object.entries(several).flatMap(([name, values]) => values.map((value) => html`<input type="hidden" name="${name}" value="${value}">`))}`;
}
