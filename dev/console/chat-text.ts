import { listOf, type Members, membersOf, textOf } from '../../src/platform/json/json-members.ts';
import type { ChatEntry } from './sandbox-client.ts';

/** The type of a message; a send without one is a text. */
export function typeOf({ message }: Pick<ChatEntry, 'message'>): string {
  return textOf(message.type) || 'text';
}

/** The member that is named like the type. */
export function contentOf(entry: Pick<ChatEntry, 'message'>): Members {
  return membersOf(entry.message[typeOf(entry)]);
}

/** An amount of minor units, `{ value, offset }`. */
export function moneyText(amount: unknown, currency: unknown): string {
  const { value, offset } = membersOf(amount);
  if (typeof value !== 'number' || typeof offset !== 'number' || offset < 1) return '';
  return `${(value / offset).toFixed(2)} ${textOf(currency)}`.trim();
}

/** What a message says in a line, for a quotation of it. */
export function shortText(entry: ChatEntry): string {
  const content = contentOf(entry);
  const reply = membersOf(content[textOf(content.type)]);
  const words = [
    content.body,
    membersOf(content.body).text,
    content.caption,
    reply.title,
    content.text,
    content.name,
    content.emoji,
  ];
  const found = words.map(textOf).find((text) => text !== '');
  return found ?? typeOf(entry).replaceAll('_', ' ');
}

/** What customers can tap in an interactive message or a template: buttons and the rows of lists. */
export type Choice = {
  kind: 'button_reply' | 'list_reply' | 'button';
  id: string;
  title: string;
  description: string;
};

/** The choices of a message that the business sent, in their order. */
export function choicesOf(entry: ChatEntry): Choice[] {
  const content = contentOf(entry);
  if (typeOf(entry) === 'template') return templateButtons(content);
  const action = membersOf(content.action);
  const buttons = listOf(action.buttons).map((button) => choiceOf('button_reply', membersOf(button.reply)));
  const rows = listOf(action.sections).flatMap((section) => listOf(section.rows));
  return [...buttons, ...rows.map((row) => choiceOf('list_reply', row))].filter(({ title }) => title !== '');
}

function choiceOf(kind: Choice['kind'], { id, title, description }: Members): Choice {
  return { kind, id: textOf(id), title: textOf(title), description: textOf(description) };
}

/** The words of quick replies are in the template, which the sandbox does not have: their payload stands for them. */
function templateButtons(content: Members): Choice[] {
  return listOf(content.components)
    .filter(({ type, sub_type }) => type === 'button' && textOf(sub_type).toLowerCase() === 'quick_reply')
    .map(({ parameters }) => textOf(listOf(parameters)[0]?.payload))
    .filter((payload) => payload !== '')
    .map((payload) => ({ kind: 'button', id: payload, title: payload, description: '' }));
}
