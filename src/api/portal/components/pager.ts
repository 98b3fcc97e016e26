import { html, type Markup, nothing } from '../markup.ts';

export function pager({
  firstHref,
  nextHref,
  label = 'More of the list',
}: {
  firstHref: string | null;
  nextHref: string | null;
  /** For a screen reader, where a page has several lists. */
  label?: string;
}): Markup {
  if (firstHref === null && nextHref === null) return nothing;
  return html`<nav class="pager" aria-label="${label}">${firstHref !== null && html`<a class="button" href="${firstHref}">First page</a>`}${nextHref !== null && html`<a class="button" href="${nextHref}" rel="next">Next page</a>`}</nav>`;
}

/** One page of a list that is short enough to be read as a whole; `page` counts from 1. */
type NumberedPage<Row> = { rows: readonly Row[]; page: number; pages: number };

/** The rows of the page that a query string asks for; of the nearest one, if there is none such. */
export function numberedPage<Row>(
  rows: readonly Row[],
  asked: string | undefined,
  size: number,
): NumberedPage<Row> {
  const pages = Math.max(1, Math.ceil(rows.length / size));
  const number = Number.parseInt(asked ?? '1', 10);
  const page = Math.min(Math.max(Number.isNaN(number) ? 1 : number, 1), pages);
  return { rows: rows.slice((page - 1) * size, page * size), page, pages };
}

export function numberedPager(
  { page, pages }: Pick<NumberedPage<unknown>, 'page' | 'pages'>,
  hrefOf: (page: number) => string,
): Markup {
  if (pages === 1) return nothing;
  const link = (to: number, label: string, rel: string) =>
    html`<a class="button" href="${hrefOf(to)}" rel="${rel}">${label}</a>`;
  return html`<nav class="pager" aria-label="More of the list">${page > 1 && link(page - 1, 'Previous page', 'prev')}<span>Page ${page} of ${pages}</span>${page < pages && link(page + 1, 'Next page', 'next')}</nav>`;
}
