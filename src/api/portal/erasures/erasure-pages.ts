import type { FastifyReply } from 'fastify';
import { erasureWorkflowId } from '../../../ops/erasures/erasure-store.ts';
import { type ErasureView, erasureOf, erasuresOf } from '../../../ops/erasures/erasures.ts';
import type { ErasureCounts } from '../../../platform/erasing.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { badge } from '../components/badge.ts';
import { detailList } from '../components/table.ts';
import { exactTime, timeAgo } from '../components/time.ts';
import { workflowRow } from '../components/workflow-link.ts';
import { type ListColumn, listPage, type Wanted } from '../kits/list-page.ts';
import { download, viewPage } from '../kits/view-page.ts';
import type { Place, Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { eraseAccountForm, eraseCustomerPages } from './erase-forms.ts';

const ERASURES = { path: '/portal/w/:wabaId/erasures', access: PAGES.member, active: 'erasures' };
const ALL_ERASURES = {
  path: '/portal/operator/erasures',
  access: PAGES.operator,
  active: 'operator/erasures',
};

export function erasurePages(app: PortalApp, context: PortalContext): void {
  listPage(app, context, {
    ...ERASURES,
    ...LIST,
    lead: 'Customers and conversations that were erased permanently, each with a signed report.',
    add: { label: 'Erase or export a customer', path: `${ERASURES.path}/new` },
    empty: { title: 'No erasures yet', text: 'A customer who asks to be forgotten is erased here.' },
  });
  listPage(app, context, {
    ...ALL_ERASURES,
    ...LIST,
    lead: 'What was erased permanently, each with a signed report. Customers are erased on the pages of their WABA.',
    empty: { title: 'No erasures yet', text: 'Nothing was erased so far.' },
    below: eraseAccountForm(app, context),
  });
  for (const place of [ERASURES, ALL_ERASURES]) erasurePage(app, context, place);
  eraseCustomerPages(app, context);
}

const COLUMNS: ListColumn<ErasureView>[] = [
  {
    label: 'Erasure',
    kind: 'narrow',
    cell: ({ erasureId }, { path }) => html`<a href="${path}/${erasureId}">${erasureId}</a>`,
  },
  { label: 'Subject', cell: subjectText },
  { label: 'Status', kind: 'narrow', cell: stateBadge },
  { label: 'Erased', kind: 'number', cell: (erasure) => totalOf(erasure).toLocaleString('en-US') },
  { label: 'Requested by', cell: ({ requestedBy }) => requestedBy },
  { label: 'Requested', kind: 'narrow', cell: ({ createdAt }, { now }) => timeAgo(createdAt, now) },
  { label: 'Finished', kind: 'narrow', cell: ({ finishedAt }, { now }) => timeAgo(finishedAt, now) },
];

const LIST = {
  title: 'Erasures',
  columns: COLUMNS,
  pageSize: 50,
  find: async ({ context, wabaId }: Visit, wanted: Wanted) => await erasuresOf(context, wabaId, wanted),
  positionOf: ({ erasureId }: ErasureView) => [erasureId],
};

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

function erasurePage(app: PortalApp, context: PortalContext, place: Place): void {
  const path = `${place.path}/:id`;
  const find = async ({ wabaId, id }: Visit) => await erasureOf(context, wabaId, id);
  viewPage(app, context, {
    ...place,
    path,
    view: async (visit) => erasureView(visit, visit.at(place.path), await find(visit)),
  });
  download(app, context, {
    path: `${path}/report`,
    access: place.access,
    send: async (visit) => sendReport(visit.reply, await find(visit)),
  });
}

function erasureView(visit: Visit, path: string, erasure: ErasureView): PageView {
  const { erasureId, counts, refused, createdAt, startedAt, finishedAt, waitsFor, report } = erasure;
  const facts: [string, Child][] = [
    ['Status', stateBadge(erasure)],
    ['Erased', listOf(counts) || 'nothing yet'],
    ['Requested by', erasure.requestedBy],
    ['Requested', exactTime(createdAt)],
    ['Begun', exactTime(startedAt)],
    ['Finished', exactTime(finishedAt)],
  ];
  if (listOf(refused) !== '') facts.push(['Refused by the object store', listOf(refused)]);
  if (waitsFor !== null) facts.push(['Waits for', waitsFor]);
  facts.push(...workflowRow(visit, erasureWorkflowId(erasure)));
  return {
    title: `Erasure ${erasureId}`,
    trail: [{ label: 'Erasures', href: path }],
    lead: `Of ${subjectText(erasure)}.`,
    actions:
      report !== null &&
      html`<a class="button" href="${path}/${erasureId}/report">Download the signed report</a>`,
    body: html`<div class="card">${detailList(facts)}</div>`,
  };
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

function sendReport(reply: FastifyReply, { erasureId, report }: ErasureView): FastifyReply {
  if (report === null) throw pageNotFound();
  return reply
    .type('application/json; charset=utf-8')
    .header('content-disposition', `attachment; filename="erasure-${erasureId}.json"`)
    .send(`${JSON.stringify(report, null, 2)}\n`);
}
