import { html, type Markup } from '../markup.ts';
import type { Viewer } from './viewer.ts';

/** The hidden field that each form carries which changes something. */
export function csrfField({ csrfToken }: Pick<Viewer, 'csrfToken'>): Markup {
  return html`<input type="hidden" name="_csrf" value="${csrfToken}">`;
}
