import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { retryDelivery } from '../../../deliveries/retry-now.ts';
import { cancelDelivery, wabaOfDelivery } from '../../../deliveries/search/shown-delivery.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { postForm } from '../components/form.ts';
import { dataTable } from '../components/table.ts';
import { type FormValues, formLine, formValues } from '../form-values.ts';
import { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { backToList, DELIVERY_PLACES, placeOf } from './delivery-list.ts';

/** As many as a page of the list shows. */
const MOST = 50;

const Selection = Type.Object({
  id: Type.Optional(Type.Union([formLine(64), Type.Array(formLine(64), { maxItems: MOST })])),
  confirm: Type.Optional(formLine(8)),
});

type Change = {
  title: string;
  done: string;
  refused: string;
  /** Names the notice of the list. */
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
  const schema = { body: Selection };
  for (const { path, changing: config } of DELIVERY_PLACES)
    app.post(`${path}/selected/retry`, { config, schema }, async (request, reply) => {
      const ids = selectedIds(formValues(request.body));
      return await changeAll(new Visit(request, reply, context), ids, RETRY);
    });
  const drop = '/portal/w/:wabaId/deliveries/selected/drop';
  app.post(drop, { config: PAGES.admin, schema }, async (request, reply) => {
    const visit = new Visit(request, reply, context);
    const ids = selectedIds(formValues(request.body));
    const isConfirmed = request.body.confirm === 'yes';
    if (ids.length > 0 && !isConfirmed) return askBeforeDrop(visit, ids);
    return await changeAll(visit, ids, DROP);
  });
}

/** Ids name their times: the oldest first, because later deliveries of an ordering key wait for it. */
function selectedIds(given: FormValues): string[] {
  return [...new Set(given.list('id'))].toSorted();
}

type Outcome = { id: string; wabaId: string | null; refusal: string | null };

/** Changes one after the other, each by itself; says of each what came of it where one was refused. */
async function changeAll(visit: Visit, ids: readonly string[], change: Change): Promise<FastifyReply> {
  const { reply, context, tools, wabaId } = visit;
  const page = pageOf(visit, change.title);
  if (ids.length === 0) {
    const error = invalidValue('No delivery is selected. Select one or more in the list first.', 'id');
    const notice = { kind: 'error', text: error.message } as const;
    return sendPage(reply, { ...page, notice, error, body: backLink(visit) });
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
  if (isDone) return reply.redirect(backToList(visit, { done: change.doneName }), 303);
  return sendPage(reply, { ...page, body: html`${outcomeTable(change, outcomes)}${backLink(visit)}` });
}

function pageOf(visit: Visit, title: string) {
  const { title: label, active } = placeOf(visit);
  return { title, active, trail: [{ label, href: backToList(visit) }] };
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

function askBeforeDrop(visit: Visit, ids: readonly string[]): FastifyReply {
  const count = ids.length === 1 ? 'this delivery' : `these ${ids.length} deliveries`;
  const form = html`${ids.map((id) => html`<input type="hidden" name="id" value="${id}">`)}<input type="hidden" name="confirm" value="yes">
<div class="buttons"><button class="danger">Drop</button><a class="button" href="${backToList(visit)}">Cancel</a></div>`;
  return sendPage(visit.reply, {
    ...pageOf(visit, `Drop ${count}?`),
    body: html`<div class="card"><ul>${ids.map((id) => html`<li><code class="break">${id}</code></li>`)}</ul>
<p>What is dropped is not sent any more, and the next events of the same ordering keys follow. It stays in the log, and a replay can send it.</p>
${postForm(visit.viewer, visit.request.url, form)}</div>`,
  });
}
