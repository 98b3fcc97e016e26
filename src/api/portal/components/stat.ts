import { type Child, html, type Markup } from '../markup.ts';

/** One figure with its name, and what there is to know about it. */
export type Stat = { label: string; value: Child; note?: Child; tone?: 'good' | 'bad' | 'waiting' };

/** Figures side by side. */
export function statRow(stats: readonly Stat[]): Markup {
  return html`<dl class="stats">${stats.map(
    ({ label, value, note, tone = '' }) =>
      html`<div class="stat ${tone}"><dt>${label}</dt><dd>${value}</dd>${note && html`<dd class="note">${note}</dd>`}</div>`,
  )}</dl>`;
}
