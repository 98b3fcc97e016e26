import {
  items,
  type JsonNode,
  member,
  sourceWithEdits,
  type TextEdit,
} from '../../platform/json/json-text.ts';
import { phoneNumberIdOf, wabaIdOf } from './item-context.ts';
import { readUpstreamRoot, UnreadableBody } from './upstream-items.ts';

/** The entries of a body, with whom each of them says it is about. */
export type BodyEntries = { root: JsonNode; entries: BodyEntry[] };
type BodyEntry = { node: JsonNode; wabaId: string | null; phoneNumberIds: string[] };

/** Null: the body cannot be read, so it does not say whom it is about. */
export function readEntries(body: Uint8Array): BodyEntries | null {
  try {
    const root = readUpstreamRoot(body);
    const entries = items(member(root, 'entry')).map((node) => ({
      node,
      wabaId: wabaIdOf(node),
      phoneNumberIds: items(member(node, 'changes')).flatMap(
        (change) => phoneNumberIdOf(member(change, 'value')) ?? [],
      ),
    }));
    return { root, entries };
  } catch (error) {
    if (error instanceof UnreadableBody) return null;
    throw error;
  }
}

/** The body with null in place of some entries, so that the others keep their places; all else byte for byte. */
export function withoutEntries({ root }: BodyEntries, entries: readonly BodyEntry[]): Buffer {
  const edits = entries.map(({ node }): TextEdit => ({ start: node.start, end: node.end, text: 'null' }));
  return Buffer.from(sourceWithEdits(root, edits));
}
