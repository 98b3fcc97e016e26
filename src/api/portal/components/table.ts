import { type Child, html, type Markup } from '../markup.ts';

/** A column by its heading: numbers stand right, narrow columns take no more than they need. */
export type Column = string | { label: string; kind: 'number' | 'narrow' };

/** `caption` is for screen readers; with `keys`, one for each row, a live region can tell which rows are new. */
export function dataTable(
  caption: string,
  columns: readonly Column[],
  rows: readonly (readonly Child[])[],
  keys: readonly string[] = [],
): Markup {
  return html`<div class="table" role="region" aria-label="${caption}" tabindex="0"><table>
<caption class="unseen">${caption}</caption>
<thead><tr>${columns.map((column) => html`<th scope="col" class="${kindOf(column)}">${typeof column === 'string' ? column : column.label}</th>`)}</tr></thead>
<tbody>${rows.map(
    (
      cells,
      row,
    ) => html`<tr ${keys[row] !== undefined && html`data-key="${keys[row]}"`}>${cells.map((cell, at) => html`<td class="${kindOf(columns[at])}">${cell}</td>`)}</tr>
`,
  )}</tbody>
</table></div>`;
}

function kindOf(column: Column | undefined): string {
  return typeof column === 'object' ? column.kind : '';
}

export function detailList(entries: readonly (readonly [string, Child])[]): Markup {
  return html`<dl class="details">${entries.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

/** What stands where a list would: why it is empty and what to do next. */
export function emptyState(title: string, text: Child, action?: Child): Markup {
  return html`<div class="empty"><p class="empty-title">${title}</p><p>${text}</p>${action && html`<p>${action}</p>`}</div>`;
}

export type Stat = { label: string; value: Child; note?: Child; tone?: 'good' | 'bad' | 'waiting' | false };

export function statRow(stats: readonly Stat[]): Markup {
  return html`<dl class="stats">${stats.map(
    ({ label, value, note, tone = '' }) =>
      html`<div class="stat ${tone}"><dt>${label}</dt><dd>${value}</dd>${note && html`<dd class="note">${note}</dd>`}</div>`,
  )}</dl>`;
}
