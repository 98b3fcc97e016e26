import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { retryDelivery } from '../../../deliveries/retry-now.ts';
import { cancelDelivery } from '../../../deliveries/search/shown-delivery.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown, sendFormPage } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { viewerOf, wabaOf } from '../access/viewer.ts';
import { csrfField } from '../components/form.ts';
import { dataTable } from '../components/table.ts';
import { toolsOf } from '../endpoints/endpoint-status.ts';
import { formLine, formValues } from '../form-values.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { backToList } from './delivery-list.ts';

/** As many as a page of the list shows. */
const MOST = 50;

const PATH = '/portal/w/:wabaId/deliveries/selected';
const Params = Type.Object({ wabaId: Type.String() });
const Selection = Type.Object({
  id: Type.Optional(Type.Union([formLine(64), Type.Array(formLine(64), { maxItems: MOST })])),
  confirm: Type.Optional(formLine(8)),
});

type Change = { title: string; button: string; done: string; refused: string };

const RETRY: Change = {
  title: 'Retry deliveries now',
  button: 'Retry now',
  done: 'The next attempt is made now.',
  refused: 'Not retried',
};
const DROP: Change = {
  title: 'Drop deliveries',
  button: 'Drop',
  done: 'Dropped.',
  refused: 'Not dropped',
};

/** POST …/selected/retry makes the next attempts of the selected deliveries now; POST …/selected/drop asks, then drops them. */
export function deliverySelection(app: PortalApp, context: PortalContext): void {
  const options = { config: PAGES.admin, schema: { params: Params, body: Selection } };
  app.post(`${PATH}/retry`, options, async (request, reply) => {
    const retry = async (id: string) =>
      void (await retryDelivery(toolsOf(request, context), wabaOf(request).wabaId, id));
    return await changeAll(request, reply, { change: RETRY, one: retry, doneName: 'retried' });
  });
  app.post(`${PATH}/drop`, options, async (request, reply) => {
    const ids = selectedIds(request);
    if (ids.length > 0 && request.body.confirm !== 'yes') return askBeforeDrop(request, reply, ids);
    const drop = async (id: string) =>
      void (await cancelDelivery(toolsOf(request, context), wabaOf(request).wabaId, id));
    return await changeAll(request, reply, { change: DROP, one: drop, doneName: 'dropped' });
  });
}

/** Ids name their times: the oldest first, because later deliveries of an ordering key wait for it. */
function selectedIds({ body }: FastifyRequest): string[] {
  return [...new Set(formValues(body).list('id'))].toSorted();
}

type Outcome = { id: string; refusal: string | null };

/** Changes one after the other, each by itself; says of each what came of it where one was refused. */
async function changeAll(
  request: FastifyRequest,
  reply: FastifyReply,
  { change, one, doneName }: { change: Change; one: (id: string) => Promise<void>; doneName: string },
): Promise<FastifyReply> {
  const ids = selectedIds(request);
  if (ids.length === 0) return nothingSelected(request, reply, change);
  const outcomes: Outcome[] = [];
  for (const id of ids) {
    const refusal = await orShown<string | null>(
      () => one(id).then(() => null),
      (error) => error.message,
    );
    outcomes.push({ id, refusal });
  }
  const isDone = outcomes.every(({ refusal }) => refusal === null);
  if (isDone) return reply.redirect(backToList(request, { done: doneName }), 303);
  return sendPage(reply, { ...pageOf(request, change.title), body: outcomeTable(request, change, outcomes) });
}

function nothingSelected(request: FastifyRequest, reply: FastifyReply, { title }: Change): FastifyReply {
  const error = invalidValue('No delivery is selected. Select one or more in the list first.', 'id');
  const notice = { kind: 'error', text: error.message } as const;
  return sendFormPage(reply, { ...pageOf(request, title), notice, body: backLink(request) }, error);
}

function pageOf(request: FastifyRequest, title: string) {
  return { title, active: 'deliveries', trail: [{ label: 'Deliveries', href: backToList(request) }] };
}

function backLink(request: FastifyRequest): Markup {
  return html`<p><a class="button" href="${backToList(request)}">Back to the list</a></p>`;
}

function outcomeTable(request: FastifyRequest, change: Change, outcomes: readonly Outcome[]): Markup {
  const { wabaId } = wabaOf(request);
  const rows = outcomes.map(({ id, refusal }): Child[] => [
    html`<a class="mono" href="/portal/w/${encodeURIComponent(wabaId)}/deliveries/${encodeURIComponent(id)}">${id}</a>`,
    refusal === null
      ? change.done
      : html`<strong>${change.refused}.</strong> <span class="break">${refusal}</span>`,
  ]);
  const changed = outcomes.filter(({ refusal }) => refusal === null).length;
  return html`<p>${changed} of ${outcomes.length} changed.</p>
${dataTable('Outcomes', [{ label: 'Delivery', kind: 'narrow' }, 'Outcome'], rows)}${backLink(request)}`;
}

function askBeforeDrop(request: FastifyRequest, reply: FastifyReply, ids: readonly string[]): FastifyReply {
  const count = ids.length === 1 ? 'this delivery' : `these ${ids.length} deliveries`;
  const hidden = ids.map((id) => html`<input type="hidden" name="id" value="${id}">`);
  return sendPage(reply, {
    ...pageOf(request, `Drop ${count}?`),
    body: html`<div class="card"><ul>${ids.map((id) => html`<li><code class="break">${id}</code></li>`)}</ul>
<p>What is dropped is not sent any more, and the next events of the same ordering keys follow. It stays in the log, and a replay can send it.</p>
<form method="post" action="${request.url}">${csrfField(viewerOf(request))}${hidden}<input type="hidden" name="confirm" value="yes">
<div class="buttons"><button class="danger">Drop</button><a class="button" href="${backToList(request)}">Cancel</a></div></form></div>`,
  });
}
