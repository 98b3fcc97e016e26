import { type JsonNode, members, stringOf, type TextEdit } from '../../platform/json/json-text.ts';

/** The edits that take members out of an object, every repetition of them, each with the comma that belongs to it. */
export function memberRemovals(node: JsonNode, names: readonly string[]): TextEdit[] {
  const all = members(node);
  const edits: TextEdit[] = [];
  let keptCount = 0;
  all.forEach(({ name: key, value }, position) => {
    if (!names.includes(stringOf(key) ?? '')) {
      keptCount++;
      return;
    }
    const previous = all[position - 1];
    const next = all[position + 1];
    // With a kept member before it the comma in front goes, otherwise the one behind, if there is one.
    if (keptCount > 0 && previous) edits.push({ start: previous.value.end, end: value.end, text: '' });
    else edits.push({ start: key.start, end: next ? next.name.start : value.end, text: '' });
  });
  return edits;
}
