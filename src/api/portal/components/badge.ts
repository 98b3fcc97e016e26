import { html, type Markup } from '../markup.ts';

/** How a state is to be taken; each has its own sign beside the colour. */
export type Tone = 'good' | 'bad' | 'waiting' | 'off' | 'neutral';

const SIGNS = { good: '✓', bad: '✕', waiting: '◔', off: '‖', neutral: '•' };

export function badge(tone: Tone, word: string): Markup {
  return html`<span class="badge ${tone}"><span aria-hidden="true">${SIGNS[tone]}</span> ${word}</span>`;
}
