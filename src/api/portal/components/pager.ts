import { html, type Markup, nothing } from '../markup.ts';

/** Links to the first and to the next page of a list that is walked by cursor. */
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
