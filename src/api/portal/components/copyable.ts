import { html, type Markup } from '../markup.ts';

/** An id or a URL in monospace; with a script it gets a button that copies it. */
export function copyable(text: string): Markup {
  return html`<span class="copyable"><code>${text}</code><button type="button" class="copy" data-copy="${text}" hidden>Copy</button></span>`;
}

/** Characters at both ends that a cut id keeps: ids of one kind begin alike. */
const KEPT = { narrow: [6, 14], wide: [12, 26] } as const;

/** An id in a table, cut in its middle; the whole is in its title, and a button copies it. */
export function cutId(text: string, room: keyof typeof KEPT = 'narrow'): Markup {
  const [head, tail] = KEPT[room];
  const isCut = text.length > head + tail + 1;
  const shown = isCut ? `${text.slice(0, head)}…${text.slice(-tail)}` : text;
  return html`<span class="copyable cut-id"><code title="${text}">${shown}</code><button type="button" class="copy" data-copy="${text}" hidden>Copy</button></span>`;
}

/** A text that is not copied as it is shown: its button is elsewhere, or what it shows is not the original. */
export function shownBlock(text: string, label: string): Markup {
  return html`<div class="code">${preOf(text, label)}</div>`;
}

/** Copies the text of a block with this id, wherever it is on the page. */
export function copyButton(blockId: string, label: string): Markup {
  return html`<button type="button" class="copy" data-copy-from="${blockId}" hidden>${label}</button>`;
}

/** `id`: where another button copies it. */
export function codeBlock(text: string, label: string, id?: string): Markup {
  return html`<div class="code"><button type="button" class="copy" data-copy-block hidden>Copy</button>${preOf(text, label, id)}</div>`;
}

function preOf(text: string, label: string, id?: string): Markup {
  return html`<pre tabindex="0" aria-label="${label}" role="region"><code ${id !== undefined && html`id="${id}"`}>${text}</code></pre>`;
}
