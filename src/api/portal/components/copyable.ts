import { html, type Markup } from '../markup.ts';

/** An id or a URL in monospace; with a script it gets a button that copies it. */
export function copyable(text: string): Markup {
  return html`<span class="copyable"><code>${text}</code><button type="button" class="copy" data-copy="${text}" hidden>Copy</button></span>`;
}

/** A block of code or a body, scrollable, with the same button. */
export function codeBlock(text: string, label: string): Markup {
  return html`<div class="code"><button type="button" class="copy" data-copy-block hidden>Copy</button><pre tabindex="0" aria-label="${label}" role="region"><code>${text}</code></pre></div>`;
}
