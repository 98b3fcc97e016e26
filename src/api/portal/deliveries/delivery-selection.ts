import { Type } from 'typebox';
import { cancelDelivery, wabaOfDelivery } from '../../../features/delivery-log/shown-delivery.ts';
import { retryDelivery } from '../../../features/endpoints/retry-now.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown } from '../access/page-error.ts';
import { postForm } from '../components/form.ts';
import { dataTable } from '../components/table.ts';
import { type FormValues, formLine } from '../form-values.ts';
import { action } from '../kits/action.ts';
import type { Next } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { backToList, DELIVERY_PLACES, placeOf } from './delivery-list.ts';

/** As many as a page of the list shows. */
const MOST = 50;

const FIELDS = {
  id: Type.Union([formLine(64), Type.Array(formLine(64), { maxItems: MOST })]),
  confirm: formLine(8),
};

type Change = {
  title: string;
  done: string;
  refused: string;
  doneName: 'retried' | 'dropped';
  make: (tools: Visit['tools'], wabaId: string, id: string) => Promise<unknown>;
};

const RETRY: Change = {
  title: 'Retry deliveries now',
  done: 'The next attempt is made now.',
  refused: 'Not retried',
  doneName: 'retried',
  make: retryDelivery,
};
const DROP: Change = {
  title: 'Drop deliveries',
  done: 'Dropped.',
  refused: 'Not dropped',
  doneName: 'dropped',
  make: cancelDelivery,
};

/** POST …/selected/retry makes the next attempts of the selected deliveries now; POST …/selected/drop, of one WABA, asks, then drops them. */
export function deliverySelection(app: PortalApp, context: PortalContext): void {
  for (const { path, changing: access, active } of DELIVERY_PLACES)
    action(app, context, {
      path: `${path}/selected/retry`,
      access,
      active,
      fields: FIELDS,
      act: (visit, given) => changeAll(visit, selectedIds(given), RETRY),
    });
  action(app, context, {
    path: '/portal/w/:wabaId/deliveries/selected/drop',
    access: PAGES.admin,
    fields: FIELDS,
    active: 'deliveries',
    act: async (visit, given) => {
      const ids = selectedIds(given);
      const isAsked = ids.length > 0 && given.text('confirm') !== 'yes';
      return isAsked ? askBeforeDrop(visit, ids) : await changeAll(visit, ids, DROP);
    },
  });
}

/** Ids name their times: the oldest first, because later deliveries of an ordering key wait for it. */
function selectedIds(given: FormValues): string[] {
  return [...new Set(given.list('id'))].toSorted();
}

type Outcome = { id: string; wabaId: string | null; refusal: string | null };

/** Changes one after the other, each by itself; says of each what came of it where one was refused. */
async function changeAll(visit: Visit, ids: readonly string[], change: Change): Promise<Next> {
  const { context, tools, wabaId } = visit;
  const page = pageOf(visit, change.title);
  if (ids.length === 0) {
    const error = invalidValue('No delivery is selected. Select one or more in the list first.', 'id');
    const notice = { kind: 'error', text: error.message } as const;
    return { ...page, notice, error, body: backLink(visit) };
  }
  const changeOne = async (id: string): Promise<Outcome> => {
    const outcome: Outcome = { id, wabaId: null, refusal: null };
    const make = async () => {
      outcome.wabaId = wabaId ?? (await wabaOfDelivery(context, id));
      await change.make(tools, outcome.wabaId, id);
    };
    await orShown(make, (error) => {
      outcome.refusal = error.message;
    });
    return outcome;
  };
  const outcomes: Outcome[] = [];
  for (const id of ids) outcomes.push(await changeOne(id));
  const isDone = outcomes.every(({ refusal }) => refusal === null);
  if (isDone) return backToList(visit, { done: change.doneName });
  return { ...page, body: html`${outcomeTable(change, outcomes)}${backLink(visit)}` };
}

function pageOf(visit: Visit, title: string) {
  return { title, trail: [{ label: placeOf(visit).title, href: backToList(visit) }] };
}

function backLink(visit: Visit): Markup {
  return html`<p><a class="button" href="${backToList(visit)}">Back to the list</a></p>`;
}

function outcomeTable(change: Change, outcomes: readonly Outcome[]): Markup {
  const rows = outcomes.map(({ id, wabaId, refusal }): Child[] => [
    wabaId === null
      ? html`<span class="mono">${id}</span>`
      : html`<a class="mono" href="/portal/w/${encodeURIComponent(wabaId)}/deliveries/${encodeURIComponent(id)}">${id}</a>`,
    refusal === null
      ? change.done
      : html`<strong>${change.refused}.</strong> <span class="break">${refusal}</span>`,
  ]);
  const changed = outcomes.filter(({ refusal }) => refusal === null).length;
  return html`<p>${changed} of ${outcomes.length} changed.</p>
${dataTable('Outcomes', [{ label: 'Delivery', kind: 'narrow' }, 'Outcome'], rows)}`;
}

function askBeforeDrop(visit: Visit, ids: readonly string[]): PageView {
  const count = ids.length === 1 ? 'this delivery' : `these ${ids.length} deliveries`;
  const form = html`${ids.map((id) => html`<input type="hidden" name="id" value="${id}">`)}<input type="hidden" name="confirm" value="yes">
<div class="buttons"><button class="danger">Drop</button><a class="button" href="${backToList(visit)}">Cancel</a></div>`;
  return {
    ...pageOf(visit, `Drop ${count}?`),
    body: html`<div class="card"><ul>${ids.map((id) => html`<li><code class="break">${id}</code></li>`)}</ul>
<p>What is dropped is not sent any more, and the next events of the same ordering keys follow. It stays in the log, and a replay can send it.</p>
${postForm(visit.viewer, visit.request.url, form)}</div>`,
  };
}
