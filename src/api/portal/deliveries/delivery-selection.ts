import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { retryDelivery } from '../../../deliveries/retry-now.ts';
import { cancelDelivery, wabaOfDelivery } from '../../../deliveries/search/shown-delivery.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown, sendFormPage } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { viewerOf } from '../access/viewer.ts';
import { csrfField } from '../components/form.ts';
import { dataTable } from '../components/table.ts';
import { toolsOf } from '../endpoints/endpoint-status.ts';
import { formLine, formValues } from '../form-values.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { backToList, DELIVERY_PLACES, type DeliveryScope, scopeOf } from './delivery-list.ts';

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
  make: (tools: ReturnType<typeof toolsOf>, wabaId: string, id: string) => Promise<unknown>;
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
  for (const { path, changing: config } of DELIVERY_PLACES)
    app.post(`${path}/selected/retry`, { config, schema: { body: Selection } }, async (request, reply) =>
      changeAll(request, reply, { context, change: RETRY }),
    );
  const options = { config: PAGES.admin, schema: { body: Selection } };
  app.post('/portal/w/:wabaId/deliveries/selected/drop', options, async (request, reply) => {
    const ids = selectedIds(request);
    const isConfirmed = request.body.confirm === 'yes';
    if (ids.length > 0 && !isConfirmed) return askBeforeDrop(request, reply, scopeOf(request), ids);
    return await changeAll(request, reply, { context, change: DROP });
  });
}

/** Ids name their times: the oldest first, because later deliveries of an ordering key wait for it. */
function selectedIds({ body }: FastifyRequest): string[] {
  return [...new Set(formValues(body).list('id'))].toSorted();
}

type Outcome = { id: string; wabaId: string | null; refusal: string | null };

/** Changes one after the other, each by itself; says of each what came of it where one was refused. */
async function changeAll(
  request: FastifyRequest,
  reply: FastifyReply,
  { context, change }: { context: PortalContext; change: Change },
): Promise<FastifyReply> {
  const scope = scopeOf(request);
  const ids = selectedIds(request);
  if (ids.length === 0) return nothingSelected(request, reply, scope, change);
  const tools = toolsOf(request, context);
  const changeOne = async (id: string): Promise<Outcome> => {
    const outcome: Outcome = { id, wabaId: null, refusal: null };
    const make = async () => {
      outcome.wabaId = scope.waba?.wabaId ?? (await wabaOfDelivery(context, id));
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
  if (isDone) return reply.redirect(backToList(request, scope, { done: change.doneName }), 303);
  const body = html`${outcomeTable(change, outcomes)}${backLink(request, scope)}`;
  return sendPage(reply, { ...pageOf(request, scope, change.title), body });
}

function nothingSelected(
  request: FastifyRequest,
  reply: FastifyReply,
  scope: DeliveryScope,
  { title }: Change,
): FastifyReply {
  const error = invalidValue('No delivery is selected. Select one or more in the list first.', 'id');
  const notice = { kind: 'error', text: error.message } as const;
  return sendFormPage(
    reply,
    { ...pageOf(request, scope, title), notice, body: backLink(request, scope) },
    error,
  );
}

function pageOf(request: FastifyRequest, scope: DeliveryScope, title: string) {
  const label = scope.waba === null ? 'All deliveries' : 'Deliveries';
  return { title, active: scope.active, trail: [{ label, href: backToList(request, scope) }] };
}

function backLink(request: FastifyRequest, scope: DeliveryScope): Markup {
  return html`<p><a class="button" href="${backToList(request, scope)}">Back to the list</a></p>`;
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

function askBeforeDrop(
  request: FastifyRequest,
  reply: FastifyReply,
  scope: DeliveryScope,
  ids: readonly string[],
): FastifyReply {
  const count = ids.length === 1 ? 'this delivery' : `these ${ids.length} deliveries`;
  const hidden = ids.map((id) => html`<input type="hidden" name="id" value="${id}">`);
  return sendPage(reply, {
    ...pageOf(request, scope, `Drop ${count}?`),
    body: html`<div class="card"><ul>${ids.map((id) => html`<li><code class="break">${id}</code></li>`)}</ul>
<p>What is dropped is not sent any more, and the next events of the same ordering keys follow. It stays in the log, and a replay can send it.</p>
<form method="post" action="${request.url}">${csrfField(viewerOf(request))}${hidden}<input type="hidden" name="confirm" value="yes">
<div class="buttons"><button class="danger">Drop</button><a class="button" href="${backToList(request, scope)}">Cancel</a></div></form></div>`,
  });
}
