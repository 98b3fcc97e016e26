import { member, parseJson, stringOf } from '../../platform/json/json-text.ts';
import type { MessageItem } from './message-items.ts';

/** All that a customer wrote to the business alone, or the text of the button or row that they chose; null for anything else. */
export function saidText({ type, rawJson, groupId }: Pick<MessageItem, 'type' | 'rawJson' | 'groupId'>) {
  const isSaying = type === 'text' || type === 'button' || type === 'interactive';
  if (groupId !== null || !isSaying) return null;
  const content = member(parseJson(rawJson, { deepNodes: 'mark' }), type);
  if (type === 'text') return stringOf(member(content, 'body'));
  if (type === 'button') return stringOf(member(content, 'text'));
  const reply = member(content, 'button_reply') ?? member(content, 'list_reply');
  return stringOf(member(reply, 'title'));
}
