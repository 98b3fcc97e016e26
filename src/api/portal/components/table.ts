import { type Child, html, type Markup } from '../markup.ts';

/** A column: numbers stand right, narrow columns take no more than they need. */
export type Column = { label: string; kind?: 'number' | 'narrow' };

/**
 * A table of data; `caption` says to a screen reader what it lists. Wide ones scroll inside themselves. With `keys`,
 * one for each row, a live region can tell which rows are new.
 */
export function dataTable(
  caption: string,
  columns: readonly Column[],
  rows: readonly (readonly Child[])[],
  keys: readonly string[] = [],
): Markup {
  return html`<div class="table" role="region" aria-label="${caption}" tabindex="0"><table>
<caption class="unseen">${caption}</caption>
<thead><tr>${columns.map(({ label, kind }) => html`<th scope="col" class="${kind ?? ''}">${label}</th>`)}</tr></thead>
<tbody>${rows.map(
    (
      cells,
      row,
    ) => html`<tr ${keys[row] !== undefined && html`data-key="${keys[row]}"`}>${cells.map((cell, at) => html`<td class="${columns[at]?.kind ?? ''}">${cell}</td>`)}</tr>
`,
  )}</tbody>
</table></div>`;
}

/** Names and values below each other. */
export function detailList(entries: readonly (readonly [string, Child])[]): Markup {
  return html`<dl class="details">${entries.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}
