import { type JsonNode, members, stringOf } from './json-text.ts';

/** Replaces the text from `start` to `end` (offsets in the document) by `text`. */
export type TextEdit = { readonly start: number; readonly end: number; readonly text: string };

/** The source text of a node after some edits inside it; everything else stays byte for byte. Edits must not overlap. */
export function sourceWithEdits(node: JsonNode, edits: readonly TextEdit[]): string {
  const { text } = node.tape;
  let result = '';
  let at = node.start;
  for (const edit of edits.toSorted((left, right) => left.start - right.start)) {
    result += text.slice(at, edit.start) + edit.text;
    at = edit.end;
  }
  return result + text.slice(at, node.end);
}

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
