import { type Child, html, type Markup } from '../markup.ts';

/** What stands where a list would: why it is empty and what to do next. */
export function emptyState(title: string, text: Child, action?: Child): Markup {
  return html`<div class="empty"><p class="empty-title">${title}</p><p>${text}</p>${action && html`<p>${action}</p>`}</div>`;
}
