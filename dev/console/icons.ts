import { html, type Markup } from '../../src/api/portal/markup.ts';

/** Outlines on a field of 24 × 24, drawn for this page: signs of a font are not on every machine. */
const OUTLINES = {
  plus: 'M12 5v14M5 12h14',
  send: 'M4 12 20 5l-5 15-3.5-6.5zM11.5 13.5 20 5',
  voice: 'M12 4a3 3 0 0 1 3 3v5a3 3 0 0 1-6 0V7a3 3 0 0 1 3-3zM6 11v1a6 6 0 0 0 12 0v-1M12 18v3',
  film: 'M4 6h16v12H4zM8 6v12M16 6v12M4 12h16',
  file: 'M7 3h7l4 4v14H7zM14 3v4h4M10 12h5M10 16h5',
  picture: 'M4 5h16v14H4zM4 16l5-5 4 4 2-2 5 4M15.5 9.5h.01',
  sticker: 'M12 4a8 8 0 1 0 8 8l-8-8zM12 4c0 5 3 8 8 8M8.5 13.5c1.5 2.5 4.5 2.8 6.5 1.5',
  place: 'M12 21c4-5 6-8 6-11a6 6 0 0 0-12 0c0 3 2 6 6 11zM12 12a2 2 0 1 0 0-4 2 2 0 0 0 0 4z',
  person: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM5 20c1-4 4-5 7-5s6 1 7 5',
  cart: 'M3 5h3l2 10h10l2-7H7M9 19.5h.01M17 19.5h.01',
  card: 'M3 6h18v12H3zM3 10h18M7 15h4',
  form: 'M5 4h14v16H5zM8 9l1.5 1.5L12 8M14 9h2M8 15l1.5 1.5L12 14M14 15h2',
  blocks: 'M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z',
} as const;

export type IconName = keyof typeof OUTLINES;

/** A sign that only decorates: words beside it say the same. */
export function icon(name: IconName): Markup {
  return html`<svg class="icon" viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" focusable="false"><path d="${OUTLINES[name]}"/></svg>`;
}
