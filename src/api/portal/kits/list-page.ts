import type { FastifyReply } from 'fastify';
import { sendPage } from '../access/send-page.ts';
import { numberedPage, numberedPager, pager } from '../components/pager.ts';
import { type Column, type ColumnKind, dataTable, emptyState } from '../components/table.ts';
import { type Child, html, type Markup } from '../markup.ts';
import { hrefWith } from '../navigation.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { type FormField, fieldMarkup, type Option } from './form-fields.ts';
import type { Refused } from './form-page.ts';
import { queryOf } from './view-page.ts';
import { type Place, Visit } from './visit.ts';

export type ListColumn<Row> = {
  label: string;
  kind?: ColumnKind;
  cell: (row: Row, visit: Visit) => Child;
};

/** Which rows are wanted: those behind a position; null: the first rows. */
export type Wanted = {
  filters: Readonly<Record<string, string>>;
  after: readonly string[] | null;
  /** The position of most lists: the id of the last row before. */
  beforeId: string | null;
  limit: number;
};

export type Filter = Omit<FormField<string, null>, 'options'> & {
  options?: (visit: Visit) => Promise<readonly Option[]>;
};

export type Empty = { title: string; text: Child; action?: Child };

export type List<Row> = {
  /** What the table lists, for a screen reader. */
  caption: string;
  columns: readonly ListColumn<Row>[];
  pageSize: number;
  find: (visit: Visit, wanted: Wanted) => Promise<readonly Row[]>;
  /** The position of a row, for the cursor of the next page. Left out: `find` returns all rows, and pages have numbers. */
  positionOf?: (row: Row) => readonly string[];
  /** The fields of the form over the list: parameters behind the path that narrow it. */
  filters?: readonly Filter[];
  filterLabel?: string;
  /** Left out: nothing stands there. */
  empty?: (visit: Visit, filters: Wanted['filters']) => Empty;
  pagerLabel?: string;
};

type ShownList = { markup: Markup; isEmpty: boolean; isFirstPage: boolean };

export async function showList<Row>(visit: Visit, list: List<Row>): Promise<ShownList> {
  const names = (list.filters ?? []).map(({ name }) => name);
  const filters = Object.fromEntries(names.map((name) => [name, visit.query(name)]));
  const [form, { rows, links, isFirstPage }] = await Promise.all([
    filterForm(visit, list, filters),
    rowsOf(visit, list, filters),
  ]);
  const markup = html`${form}${rows.length === 0 ? nothingFound(list.empty?.(visit, filters)) : rowTable(visit, list, rows)}${links}`;
  return { markup, isEmpty: rows.length === 0, isFirstPage };
}

function nothingFound(empty: Empty | undefined): Markup | false {
  return empty !== undefined && emptyState(empty.title, empty.text, empty.action);
}

export function rowTable<Row>(
  visit: Visit,
  { caption, columns }: Pick<List<Row>, 'caption' | 'columns'>,
  rows: readonly Row[],
): Markup {
  const heads = columns.map(({ label, kind }): Column => (kind === undefined ? label : { label, kind }));
  const cells = rows.map((row) => columns.map(({ cell }) => cell(row, visit)));
  return dataTable(caption, heads, cells);
}

const FIRST = { after: null, beforeId: null };

type Rows<Row> = { rows: readonly Row[]; links: Markup; isFirstPage: boolean };

async function rowsOf<Row>(
  visit: Visit,
  { find, positionOf, pageSize, pagerLabel }: List<Row>,
  filters: Wanted['filters'],
): Promise<Rows<Row>> {
  const hrefOf = (more: Record<string, string>) => hrefWith(visit.path, { ...filters, ...more });
  if (positionOf === undefined) {
    const all = await find(visit, { ...FIRST, filters, limit: Number.MAX_SAFE_INTEGER });
    const page = numberedPage(all, visit.query('page'), pageSize);
    const links = numberedPager(page, (number) => hrefOf({ page: String(number) }));
    return { rows: page.rows, links, isFirstPage: page.page === 1 };
  }
  const { cursors } = visit.context;
  const scope = [visit.path, ...Object.values(filters)];
  // A link that no longer opens leads to the first page.
  const after = cursors.decode(scope, visit.query('cursor'));
  const found = await find(visit, { filters, after, beforeId: after?.[0] ?? null, limit: pageSize + 1 });
  const rows = found.slice(0, pageSize);
  const last = found.length > pageSize ? rows.at(-1) : undefined;
  const links = pager({
    firstHref: after === null ? null : hrefOf({}),
    nextHref: last === undefined ? null : hrefOf({ cursor: cursors.encode(scope, positionOf(last)) }),
    ...(pagerLabel !== undefined && { label: pagerLabel }),
  });
  return { rows, links, isFirstPage: after === null };
}

async function filterForm<Row>(
  visit: Visit,
  { filters: fields = [], filterLabel = 'Filter' }: List<Row>,
  filters: Wanted['filters'],
): Promise<Markup | false> {
  if (fields.length === 0) return false;
  const filled = fields.map(async (field) => {
    const options = (await field.options?.(visit)) ?? [];
    return fieldMarkup(
      { ...field, options },
      { subject: null, values: [filters[field.name] ?? ''], error: null },
    );
  });
  const isNarrowed = Object.values(filters).some((value) => value !== '');
  return html`<form method="get" action="${visit.path}" class="filters">
${await Promise.all(filled)}
<button>${filterLabel}</button>${isNarrowed && html`<a href="${visit.path}">Show all</a>`}</form>`;
}

type Part = (visit: Visit, refused: Refused | null) => Child | Promise<Child>;

export type ListPage<Row> = Place &
  Omit<List<Row>, 'caption' | 'empty'> &
  Pick<PageView, 'done' | 'assets'> & {
    title: string;
    /** The way back, where the page is none of the menu. */
    trail?: (visit: Visit) => NonNullable<PageView['trail']>;
    /** Left out: the title. */
    caption?: string;
    lead: Child | ((visit: Visit) => Child | Promise<Child>);
    empty: Empty | NonNullable<List<Row>['empty']>;
    /** The way to another one, for those who may change something: beside the heading, or in the empty list. */
    add?: { label: string; path: string; isPrimary?: boolean };
    actions?: (visit: Visit) => Child;
    /** What stands over the list, and what stands under it. */
    above?: Part;
    below?: Part;
    query?: readonly string[];
  };

export type ShowPage = (visit: Visit, refused?: Refused | null) => Promise<FastifyReply>;

/** A page with a list. The function that is returned shows it for the forms that stand on it. */
export function listPage<Row>(app: PortalApp, context: PortalContext, page: ListPage<Row>): ShowPage {
  const show: ShowPage = async (from, refused = null) => {
    const visit = from.on(page.path);
    const add = addLink(visit, page.add);
    const empty = (...asked: Parameters<NonNullable<List<Row>['empty']>>) => {
      const shown = typeof page.empty === 'function' ? page.empty(...asked) : page.empty;
      return { ...(add && { action: add }), ...shown };
    };
    const list = await showList(visit, { ...page, caption: page.caption ?? page.title, empty });
    const [lead, above, below] = await Promise.all([
      typeof page.lead === 'function' ? page.lead(visit) : page.lead,
      page.above?.(visit, refused),
      page.below?.(visit, refused),
    ]);
    const { title, active, done = {}, assets = [] } = page;
    const actions = html`${page.actions?.(visit)}${!list.isEmpty && add}`;
    const body = html`${above}${list.markup}${below}`;
    const view = {
      title,
      active,
      done,
      assets,
      trail: page.trail?.(visit) ?? [],
      lead,
      actions: actions.toString() && actions,
      body,
      error: refused?.error ?? null,
    };
    return sendPage(visit.reply, view);
  };
  const names = (page.filters ?? []).map(({ name }) => name);
  const querystring = queryOf([...names, ...(page.query ?? []), page.positionOf ? 'cursor' : 'page']);
  app.get(page.path, { config: page.access, schema: { querystring } }, async (request, reply) =>
    show(new Visit(request, reply, context)),
  );
  return show;
}

function addLink(visit: Visit, add: ListPage<unknown>['add']): Markup | false {
  if (add === undefined || !visit.mayChange || !visit.mayUse(add.path)) return false;
  return html`<a class="button${add.isPrimary ? ' primary' : ''}" href="${visit.at(add.path)}">${add.label}</a>`;
}
