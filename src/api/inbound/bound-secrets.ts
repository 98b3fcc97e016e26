import type { SignedBody } from '../../engine/inbox/bodies.ts';
import { findNumberOwners } from '../../features/accounts/number-owners.ts';
import { NO_WABA, phoneNumberIdOf, wabaIdOf } from '../../ingest/split/item-context.ts';
import { upstreamRootOf } from '../../ingest/split/upstream-items.ts';
import { items, member, sourceWithEdits, stringOf, type TextEdit } from '../../platform/json/json-text.ts';
import type { Database } from '../../platform/postgres/database.ts';

/** What is kept of a body, and how many entries are not, because its app secret may not speak for their WABA. */
export type ReceivedBody = SignedBody & { foreignEntries: number };

/**
 * The entries of a body that are of these WABAs, for a secret that is bound to them: an entry is of the WABA that it
 * names, and of those whose numbers it names, because events belong to the owner of the number. Null in place of the
 * others, so that these keep their places; all else byte for byte. Null: there are none.
 */
export async function entriesOf(
  database: Database,
  body: Buffer,
  wabaIds: ReadonlySet<string>,
): Promise<ReceivedBody | null> {
  const root = upstreamRootOf(body);
  if (root === null) return null;
  const entries = items(member(root, 'entry')).map((node) => ({
    node,
    wabaId: wabaIdOf(node),
    phoneNumberIds: items(member(node, 'changes')).flatMap(
      (change) => phoneNumberIdOf(member(change, 'value'), stringOf(member(change, 'field'))) ?? [],
    ),
  }));
  const owners = await findNumberOwners(database, [
    ...new Set(entries.flatMap(({ phoneNumberIds }) => phoneNumberIds)),
  ]);
  const isOwn = (wabaId: string | null | undefined) => typeof wabaId === 'string' && wabaIds.has(wabaId);
  const foreign = entries.filter(
    ({ wabaId, phoneNumberIds }) =>
      // Whose an entry without a WABA is, intake finds out, and refuses it if it is another's.
      (!isOwn(wabaId) && wabaId !== NO_WABA) ||
      phoneNumberIds.some((id) => owners.has(id) && !isOwn(owners.get(id)?.wabaId)),
  );
  const signedFor = [...wabaIds];
  if (foreign.length === 0) return { body, signedFor, foreignEntries: 0 };
  if (foreign.length === entries.length) return null;
  const edits = foreign.map(({ node }): TextEdit => ({ start: node.start, end: node.end, text: 'null' }));
  return { body: Buffer.from(sourceWithEdits(root, edits)), signedFor, foreignEntries: foreign.length };
}
