import { listOf, type Members, membersOf, textOf } from '../../../platform/json/json-members.ts';

/** An upstream message object out of its JSON text; empty for what is none. */
export function readMessage(json: string): Members {
  try {
    return membersOf(JSON.parse(json));
  } catch {
    return {};
  }
}

/** What a message says, without its file; empty where only its JSON tells. */
export function wordsOf(type: string, content: Members): string {
  switch (type) {
    case 'text':
      return textOf(content.body);
    case 'button':
      return textOf(content.text);
    case 'interactive':
      return interactiveWords(content);
    case 'template':
      return `Template ${textOf(content.name)}`;
    case 'location':
      return (
        ['name', 'address']
          .map((key) => textOf(content[key]))
          .filter(Boolean)
          .join(', ') || coordinates(content)
      );
    case 'call':
      return callWords(content);
    case 'order':
      return orderWords(content);
    case 'system':
      return textOf(content.body);
    case 'reaction':
      return textOf(content.emoji);
    default:
      return textOf(content.caption);
  }
}

/** Of the business the words and what there is to choose from, of the customer what was chosen. */
function interactiveWords(content: Members): string {
  const reply = membersOf(content[textOf(content.type)]);
  const parts = [membersOf(content.header).text, membersOf(content.body).text, reply.title, reply.body];
  const buttons = listOf(membersOf(content.action).buttons).map((button) => membersOf(button.reply).title);
  const choices = buttons.map((title) => `[${textOf(title)}]`).join(' ');
  return [...parts.map(textOf), choices].filter(Boolean).join('\n');
}

function coordinates({ latitude, longitude }: Members): string {
  return [latitude, longitude].map(textOf).filter(Boolean).join(', ');
}

function callWords({ status, duration }: Members): string {
  const seconds = typeof duration === 'number' ? `, ${duration} s` : '';
  return `${textOf(status).toLowerCase()}${seconds}`;
}

function orderWords(content: Members): string {
  const items = listOf(content.product_items);
  const lines = items.map((item) => `${textOf(item.quantity)} × ${textOf(item.product_retailer_id)}`);
  return [textOf(content.text), ...lines].filter(Boolean).join('\n');
}
