import { choicesOf } from './chat-text.ts';
import { EMOJIS } from './chat-thread.ts';
import { CustomerFormError, type Sender } from './customer-messages.ts';
import type { ChatEntry } from './sandbox-client.ts';

/**
 * The request to the sandbox for a tap on a message: `react <n> <emoji>` or `choose <n> <index>`. What is sent is
 * looked up in the chat, not taken from the form. Throws CustomerFormError.
 */
export function tappedMessage(
  tap: string,
  thread: readonly ChatEntry[],
  sender: Sender,
): Record<string, unknown> {
  const [, what, number, detail = ''] = /^(react|choose) (\d{1,9}) (.{1,10})$/u.exec(tap) ?? [];
  const entry = thread.find(({ n }) => n === Number(number));
  if (what === undefined || entry === undefined) throw new CustomerFormError('This message is gone.');
  if (what === 'react') {
    if (!EMOJIS.some((emoji) => emoji === detail)) throw new CustomerFormError('There is no such reaction.');
    return { ...sender, type: 'reaction', targetId: entry.id, emoji: detail };
  }
  const choice = entry.side === 'business' ? choicesOf(entry)[Number(detail)] : undefined;
  if (choice === undefined) throw new CustomerFormError('This message has no such button.');
  const { kind, id, title, description } = choice;
  if (kind === 'button') return { ...sender, type: 'button', replyTo: entry.id, payload: id, text: title };
  const reply = {
    interactiveType: kind,
    choiceId: id,
    title,
    ...(kind === 'list_reply' ? { description } : {}),
  };
  return { ...sender, type: 'interactive', replyTo: entry.id, ...reply };
}
