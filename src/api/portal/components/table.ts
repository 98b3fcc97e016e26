import { type Child, html, type Markup } from '../markup.ts';

/** A column by its heading: numbers stand right, narrow columns take no more than they need, times are in UTC. */
export type Column = string | { label: string; kind: ColumnKind };

export type ColumnKind = 'number' | 'narrow' | 'time';

/**
 * `caption` is for screen readers; with `keys`, one for each row, a live region can tell which rows are new. On phones and tablets each row
 * is a card, headed by its first cell; the roles keep it a table for Safari, which forgets that of elements shown as blocks.
 */
export function dataTable(
  caption: string,
  columns: readonly Column[],
  rows: readonly (readonly Child[])[],
  keys: readonly string[] = [],
): Markup {
  const look = isSlim(columns) ? 'table slim' : 'table';
  return html`<div class="${look}" role="region" aria-label="${caption}" tabindex="0"><table role="table">
<caption class="unseen">${caption}</caption>
<thead role="rowgroup"><tr role="row">${columns.map((column) => html`<th scope="col" role="columnheader" class="${classOf(column)}">${labelOf(column)}</th>`)}</tr></thead>
<tbody role="rowgroup">${rows.map(
    (
      cells,
      row,
    ) => html`<tr role="row" ${keys[row] !== undefined && html`data-key="${keys[row]}"`}>${cells.map((cell, at) => html`<td class="${classOf(columns[at])}${isNone(cell) && ' none'}" role="cell" data-label="${labelOf(columns[at])}">${cell}</td>`)}</tr>
`,
  )}</tbody>
</table></div>`;
}

/** A dash keeps its place in a table; a card leaves it out. */
function isNone(cell: Child): boolean {
  return cell !== null && cell !== undefined && /^(?:<span[^>]*>)?–(?:<\/span>)?$/.test(cell.toString());
}

/** A table that is read as one on a phone too: two columns, or a name with a few numbers. */
function isSlim(columns: readonly Column[]): boolean {
  const isNumber = (column: Column) => typeof column === 'object' && column.kind === 'number';
  return columns.length <= 2 || (columns.length === 3 && columns.slice(1).every(isNumber));
}

function labelOf(column: Column | undefined): string {
  if (typeof column !== 'object') return column ?? '';
  return column.kind === 'time' ? `${column.label} (UTC)` : column.label;
}

function classOf(column: Column | undefined): string {
  if (typeof column !== 'object') return '';
  return column.kind === 'time' ? 'narrow' : column.kind;
}
export function detailList(entries: readonly (readonly [string, Child])[]): Markup {
  return html`<dl class="details">${entries.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

/** What stands where a list would: why it is empty and what to do next. */
export function emptyState(title: string, text: Child, action?: Child): Markup {
  return html`<div class="empty"><p class="empty-title">${title}</p><p>${text}</p>${action && html`<p>${action}</p>`}</div>`;
}

/** `href`: where the figure is explained. */
export type Stat = {
  label: string;
  value: Child;
  note?: Child;
  tone?: 'good' | 'bad' | 'waiting' | false;
  href?: string;
  /** What the figure counts, where its name does not say it. */
  hint?: string;
};

export function statRow(stats: readonly Stat[]): Markup {
  return html`<dl class="stats">${stats.map(
    ({ label, value, note, tone = '', href, hint }) =>
      html`<div class="stat ${tone}" ${hint !== undefined && html`title="${hint}"`}><dt>${href === undefined ? label : html`<a href="${href}">${label}</a>`}</dt><dd>${value}</dd>${note && html`<dd class="note">${note}</dd>`}</div>`,
  )}</dl>`;
}
