import type { FoundObject } from '../../../features/delivery-log/find-objects.ts';
import { dataTable } from '../components/table.ts';
import { columnTime } from '../components/time.ts';
import { html, type Markup, nothing } from '../markup.ts';

export function foundObjects(objects: readonly FoundObject[]): Markup {
  if (objects.length === 0) return nothing;
  const rows = objects.map(({ kind, id, about, createdAt, page, wabaId }) => [
    page === null ? html`${kind} ${id}` : html`<a href="${page}">${kind} ${id}</a>`,
    about ?? '–',
    wabaId ?? '–',
    columnTime(createdAt),
  ]);
  return html`<section class="found-objects"><h2>Other objects with this id</h2>
${dataTable('Other objects with this id', ['Object', 'About', 'WABA', { label: 'Created', kind: 'time' }], rows)}</section>`;
}
