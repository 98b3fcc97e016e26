import { type Child, html, type Markup } from '../markup.ts';

export type Notice = { kind: 'done' | 'information' | 'warning' | 'error'; text: Child };

const WORDS = { done: 'Done', information: 'Note', warning: 'Warning', error: 'Error' };

/** A box that a screen reader speaks at once when it is an error. */
export function noticeBox({ kind, text }: Notice): Markup {
  const role = kind === 'error' ? 'alert' : 'status';
  return html`<div class="notice ${kind}" role="${role}"><strong>${WORDS[kind]}:</strong> ${text}</div>`;
}

/** Only texts of `texts` are ever shown, so that a link from elsewhere cannot put words into the page. */
export function noticeAfter(code: string | undefined, texts: Readonly<Record<string, Child>>): Notice | null {
  const text = code === undefined || !Object.hasOwn(texts, code) ? undefined : texts[code];
  return text === undefined ? null : { kind: 'done', text };
}
