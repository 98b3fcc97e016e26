import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { erasureWorkflowId } from '../../../erasures/erasure-store.ts';
import {
  type ErasureView,
  eraseConversation,
  eraseCustomer,
  erasureOf,
  erasuresOf,
} from '../../../erasures/erasures.ts';
import { exportCustomer } from '../../../erasures/export-customer.ts';
import { readCustomerReference } from '../../../messages/conversations/conversations.ts';
import type { ErasureCounts } from '../../../platform/erasing.ts';
import type { RequestError } from '../../../platform/request-input.ts';
import { workflowUrl } from '../../../platform/temporal/client-connection.ts';
import { sendExport } from '../../erasures/send-export.ts';
import { accountObjectId } from '../../external/schema-kit.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown, pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { type Viewer, viewerOf, wabaOf } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { postForm, textField } from '../components/form.ts';
import { pager } from '../components/pager.ts';
import { dataTable, detailList, emptyState } from '../components/table.ts';
import { exactTime, timeAgo } from '../components/time.ts';
import { mayChange, toolsOf } from '../endpoints/endpoint-status.ts';
import { formLine, formValues } from '../form-values.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

const CONFIRMATION = 'erase';
const SHOWN = 50;

/** Where the erasures of a WABA's customers are. */
export function erasuresPath(wabaId: string): string {
  return `/portal/w/${encodeURIComponent(wabaId)}/erasures`;
}

/** Erasing and exporting customers and conversations of a WABA. */
export function erasurePages(app: PortalApp, context: PortalContext): void {
  listPage(app, context);
  erasurePage(app, context);
  newErasurePage(app, context);
  exportForm(app, context);
}

const COLUMNS = [
  { label: 'Erasure', kind: 'narrow' },
  'Subject',
  { label: 'Status', kind: 'narrow' },
  { label: 'Erased', kind: 'number' },
  'Requested by',
  { label: 'Requested', kind: 'narrow' },
  { label: 'Finished', kind: 'narrow' },
] as const;

/** The rows of a list of erasures. */
export function erasureTable(path: string, erasures: readonly ErasureView[], now: Date): Markup {
  const rows = erasures.map((erasure): Child[] => [
    html`<a href="${path}/${erasure.erasureId}">${erasure.erasureId}</a>`,
    subjectText(erasure),
    stateBadge(erasure),
    totalOf(erasure).toLocaleString('en-US'),
    erasure.requestedBy,
    timeAgo(erasure.createdAt, now),
    timeAgo(erasure.finishedAt, now),
  ]);
  return dataTable('Erasures', COLUMNS, rows);
}

function subjectText({ kind, subjectId }: ErasureView): string {
  return `${kind === 'waba' ? 'WABA' : kind} ${subjectId}`;
}

function stateBadge({ state, waitsFor }: ErasureView): Markup {
  if (state === 'done') return badge('good', 'Done');
  return waitsFor === null ? badge('waiting', 'Running') : badge('waiting', 'Waiting');
}

function totalOf({ counts }: ErasureView): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** GET /portal/w/:wabaId/erasures: the newest first. */
function listPage(app: PortalApp, context: PortalContext): void {
  app.get('/portal/w/:wabaId/erasures', { config: PAGES.member }, async (request, reply) => {
    const { wabaId } = wabaOf(request);
    const path = erasuresPath(wabaId);
    const cursor = formValues(request.query).text('cursor');
    const scope = [wabaId, 'portal erasures'];
    const beforeId = cursor === '' ? null : context.cursors.decode(scope, cursor)?.[0];
    if (beforeId === undefined) throw pageNotFound();
    const found = await erasuresOf(context, wabaId, { beforeId, limit: SHOWN + 1 });
    const last = found.length > SHOWN ? found[SHOWN - 1] : undefined;
    const add =
      mayChange(viewerOf(request)) &&
      html`<a class="button" href="${path}/new">Erase or export a customer</a>`;
    const nextHref =
      last === undefined ? null : `${path}?cursor=${context.cursors.encode(scope, [last.erasureId])}`;
    return sendPage(reply, {
      title: 'Erasures',
      active: 'erasures',
      lead: 'Customers and conversations that were erased permanently, each with a signed report.',
      actions: found.length > 0 && add,
      body:
        found.length === 0
          ? emptyState('No erasures yet', 'A customer who asks to be forgotten is erased here.', add)
          : html`${erasureTable(path, found.slice(0, SHOWN), new Date(context.now()))}${pager({ firstHref: cursor === '' ? null : path, nextHref })}`,
    });
  });
}

const Params = Type.Object({ wabaId: Type.String(), id: Type.String() });

/** GET /portal/w/:wabaId/erasures/:id, and …/report for the file. */
function erasurePage(app: PortalApp, context: PortalContext): void {
  const options = { config: PAGES.member, schema: { params: Params } };
  app.get('/portal/w/:wabaId/erasures/:id', options, async (request, reply) => {
    const { wabaId } = wabaOf(request);
    const erasure = await erasureOf(context, wabaId, accountObjectId(request.params.id));
    const list = { path: erasuresPath(wabaId), active: 'erasures' };
    return sendErasure(reply, context, viewerOf(request), erasure, list);
  });
  app.get('/portal/w/:wabaId/erasures/:id/report', options, async (request, reply) => {
    const { wabaId } = wabaOf(request);
    return sendReport(reply, await erasureOf(context, wabaId, accountObjectId(request.params.id)));
  });
}

/** One erasure; `path` is that of its list. */
export function sendErasure(
  reply: FastifyReply,
  { config }: PortalContext,
  viewer: Viewer,
  erasure: ErasureView,
  { path, active }: { path: string; active: string },
): FastifyReply {
  const { erasureId, counts, refused, createdAt, startedAt, finishedAt, waitsFor, report } = erasure;
  const workflow =
    viewer.role === 'operator' ? workflowUrl(config.temporal, erasureWorkflowId(erasure)) : null;
  const went = listOf(counts);
  const facts: [string, Child][] = [
    ['Status', stateBadge(erasure)],
    ['Erased', went === '' ? 'nothing yet' : went],
    ['Requested by', erasure.requestedBy],
    ['Requested', exactTime(createdAt)],
    ['Begun', exactTime(startedAt)],
    ['Finished', exactTime(finishedAt)],
  ];
  if (listOf(refused) !== '') facts.push(['Refused by the object store', listOf(refused)]);
  if (waitsFor !== null) facts.push(['Waits for', waitsFor]);
  if (workflow !== null) facts.push(['Workflow', html`<a href="${workflow}">in the Temporal UI</a>`]);
  return sendPage(reply, {
    title: `Erasure ${erasureId}`,
    active,
    trail: [{ label: 'Erasures', href: path }],
    lead: `Of ${subjectText(erasure)}.`,
    actions:
      report !== null &&
      html`<a class="button" href="${path}/${erasureId}/report">Download the signed report</a>`,
    body: html`<div class="card">${detailList(facts)}</div>`,
  });
}

function listOf(counts: ErasureCounts): string {
  return Object.entries(counts)
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([name, count]) => `${wordsOf(name)}: ${count.toLocaleString('en-US')}`)
    .join(', ');
}

/** `rawBodiesCut` is `raw bodies cut`. */
function wordsOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** The signed report as a file. */
export function sendReport(reply: FastifyReply, { erasureId, report }: ErasureView): FastifyReply {
  if (report === null) throw pageNotFound();
  return reply
    .type('application/json; charset=utf-8')
    .header('content-disposition', `attachment; filename="erasure-${erasureId}.json"`)
    .send(`${JSON.stringify(report, null, 2)}\n`);
}

const Asked = Type.Object({ customer: formLine(), conversationId: formLine(), confirm: formLine() });

type Values = { customer: string; conversationId: string };

/** /portal/w/:wabaId/erasures/new: whose data, with a word to type before it goes. */
function newErasurePage(app: PortalApp, context: PortalContext): void {
  app.get('/portal/w/:wabaId/erasures/new', { config: PAGES.admin }, async (request, reply) => {
    const conversationId = formValues(request.query).text('conversationId').trim();
    return sendForm(request, reply, { customer: '', conversationId });
  });
  const options = { config: PAGES.admin, schema: { body: Asked } };
  app.post('/portal/w/:wabaId/erasures', options, async (request, reply) => {
    const { wabaId } = wabaOf(request);
    const customer = request.body.customer.trim();
    const conversationId = request.body.conversationId.trim();
    const show = (problems: Problems) => sendForm(request, reply, { customer, conversationId }, problems);
    if (request.body.confirm.trim() !== CONFIRMATION)
      return show({ confirm: `Type ${CONFIRMATION} to confirm.` });
    if ((customer === '') === (conversationId === ''))
      return show({ customer: 'Enter either a customer or a conversation.' });
    const tools = toolsOf(request, context);
    return await orShown(
      async () => {
        const { erasureId } =
          conversationId === ''
            ? await eraseCustomer(tools, wabaId, readCustomerReference(customer))
            : await eraseConversation(tools, wabaId, conversationId);
        return reply.redirect(`${erasuresPath(wabaId)}/${erasureId}`, 303);
      },
      (error) => show(problemOf(error)),
    );
  });
}

function problemOf({ code, message }: RequestError): Problems {
  return code === 'unknown_customer' ? { customer: message } : { conversationId: message };
}

type Problems = { customer?: string; conversationId?: string; confirm?: string; exported?: string };

function sendForm(
  request: FastifyRequest,
  reply: FastifyReply,
  values: Values,
  problems: Problems = {},
): FastifyReply {
  const viewer = viewerOf(request);
  const path = erasuresPath(wabaOf(request).wabaId);
  const body = html`<section class="card"><h2>Export</h2>
<p class="hint">Everything that is stored of a customer, as one zip archive: messages, payments and files.</p>
${postForm(viewer, `${path}/export`, exportFields(values, problems))}</section>
<section class="card"><h2>Erase</h2>
${postForm(viewer, path, eraseFields(values, problems))}</section>`;
  return sendPage(
    reply,
    {
      ...{ title: 'Erase or export a customer', active: 'erasures', body },
      trail: [{ label: 'Erasures', href: path }],
      lead: 'For a customer who asks what is stored, or asks to be forgotten.',
    },
    Object.keys(problems).length > 0 ? 422 : 200,
  );
}

const WHOM = { label: 'Phone number or user id of the customer', maxLength: 256 };

function exportFields(
  { customer }: Values,
  { exported: error = null }: { exported?: string | null },
): Markup {
  return html`${textField({ ...WHOM, name: 'exported', value: customer, required: true, error })}
<button>Download the archive</button>`;
}

function eraseFields({ customer, conversationId }: Values, problems: Problems): Markup {
  const hint = html`Type <code>${CONFIRMATION}</code>. Messages, files, events and deliveries are erased permanently; what your own systems have received stays there.`;
  const confirm = { label: 'Confirmation', name: 'confirm', required: true, maxLength: 16, hint };
  const one = { label: 'Or the id of one conversation', name: 'conversationId', maxLength: 18 };
  return html`${textField({ ...WHOM, name: 'customer', value: customer, error: problems.customer ?? null })}
${textField({ ...one, value: conversationId, error: problems.conversationId ?? null })}
${textField({ ...confirm, error: problems.confirm ?? null })}
<button class="danger">Erase permanently</button>`;
}

/** POST /portal/w/:wabaId/erasures/export: a form, so that no number stands in an address. */
function exportForm(app: PortalApp, context: PortalContext): void {
  const exported = Type.Object({ exported: formLine() });
  const options = { config: PAGES.admin, schema: { body: exported } };
  app.post('/portal/w/:wabaId/erasures/export', options, async (request, reply) => {
    const waba = wabaOf(request);
    const customer = request.body.exported.trim();
    const { exportStore: objectStore, exports } = context;
    return await orShown(
      async () => {
        const tools = { ...toolsOf(request, context), objectStore };
        const named = readCustomerReference(customer);
        return await sendExport({ request, reply, exports }, waba, () =>
          exportCustomer(tools, waba.wabaId, named),
        );
      },
      ({ message }) => sendForm(request, reply, { customer, conversationId: '' }, { exported: message }),
    );
  });
}
