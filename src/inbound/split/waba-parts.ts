import { JsonSyntaxError } from '../../platform/json/json-scanner.ts';
import { items, type JsonNode, member, parseJson, sourceOf } from '../../platform/json/json-text.ts';
import { wabaIdOf } from './item-context.ts';

/** A body, or what of it is one WABA's; null: it does not say whose. */
export type WabaPart = { wabaId: string | null; body: Buffer };

/** How upstream begins a body: up to the changes of its first entry. */
const BEGINNING =
  /^\s*\{\s*"object"\s*:\s*"[^"\\]*"\s*,\s*"entry"\s*:\s*\[\s*\{\s*"id"\s*:\s*"(\d{1,64})"\s*,\s*"changes"/;
const BEGINNING_BYTES = 256;

/**
 * Splits a body by the WABAs of its entries, in the order in which each comes first. A body of one WABA, and one that
 * cannot be read, stays as it is, byte for byte.
 */
export function splitByWaba(body: Buffer): WabaPart[] {
  const only = onlyWaba(body);
  if (only !== null) return [{ wabaId: only, body }];
  const root = readRoot(body);
  const entryNode = member(root, 'entry');
  if (root === null || entryNode === null || entryNode.kind !== 'array') return [{ wabaId: null, body }];
  const byWaba = new Map<string | null, string[]>();
  for (const entry of items(entryNode)) {
    const wabaId = wabaIdOf(entry);
    const entries = byWaba.get(wabaId) ?? [];
    entries.push(sourceOf(entry));
    byWaba.set(wabaId, entries);
  }
  const [first] = byWaba.keys();
  if (byWaba.size <= 1) return [{ wabaId: first ?? null, body }];
  const text = sourceOf(root);
  const before = text.slice(0, entryNode.start - root.start);
  const after = text.slice(entryNode.end - root.start);
  return [...byWaba].map(([wabaId, entries]) => ({
    wabaId,
    body: Buffer.from(`${before}[${entries.join(',')}]${after}`),
  }));
}

/**
 * The WABA of a body with one entry in upstream's way of writing, without reading all of it. Within a JSON string the
 * second quote would be escaped, so where the name is not found again there is no other entry with changes.
 */
function onlyWaba(body: Buffer): string | null {
  const found = BEGINNING.exec(body.toString('latin1', 0, BEGINNING_BYTES));
  if (found?.[1] === undefined) return null;
  return body.indexOf('"changes"', found[0].length) < 0 ? found[1] : null;
}

function readRoot(body: Buffer): JsonNode | null {
  try {
    return parseJson(new TextDecoder('utf-8').decode(body), { deepNodes: 'mark' });
  } catch (error) {
    if (error instanceof JsonSyntaxError) return null;
    throw error;
  }
}
