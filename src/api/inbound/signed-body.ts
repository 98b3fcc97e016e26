import { findNumberOwners } from '../../accounts/accounts.ts';
import { readEntries, withoutEntries } from '../../inbound/split/foreign-entries.ts';
import { verifyUpstreamSignature } from '../../inbound/split/upstream-signature.ts';
import type { AppSecret } from '../../platform/config/app-secrets.ts';
import type { Database } from '../../platform/postgres/database.ts';

/** What is taken of a body, and how much is not because whoever signed it may not speak for its WABA. */
export type SignedBody = { body: Buffer; foreignEntries: number };

/**
 * Finds out what a body may say: all of it when a secret signed it that is bound to no WABA, otherwise the entries of
 * the WABAs that its secrets may speak for. Null: nothing, or nobody of ours signed it.
 */
export async function readSigned(
  database: Database,
  { body, header }: { body: Buffer; header: string },
  appSecrets: readonly AppSecret[],
): Promise<SignedBody | null> {
  const [free, bound] = [
    appSecrets.filter(({ wabaIds }) => wabaIds === null),
    appSecrets.filter(({ wabaIds }) => wabaIds !== null),
  ];
  const secretsOf = (some: readonly AppSecret[]) => some.map(({ secret }) => secret);
  if (verifyUpstreamSignature(body, header, secretsOf(free))) return { body, foreignEntries: 0 };
  const signers = bound.filter(({ secret }) => verifyUpstreamSignature(body, header, [secret]));
  if (signers.length === 0) return null;
  return await ofWabas(database, body, new Set(signers.flatMap(({ wabaIds }) => wabaIds ?? [])));
}

/** An entry is of the WABA that it names, and of those whose numbers it names: events belong to the owner of the number. */
async function ofWabas(
  database: Database,
  body: Buffer,
  wabaIds: ReadonlySet<string>,
): Promise<SignedBody | null> {
  const read = readEntries(body);
  if (read === null) return null;
  const owners = await findNumberOwners(database, [
    ...new Set(read.entries.flatMap((entry) => entry.phoneNumberIds)),
  ]);
  const isOwn = (wabaId: string | null | undefined) => typeof wabaId === 'string' && wabaIds.has(wabaId);
  const foreign = read.entries.filter(
    (entry) =>
      !isOwn(entry.wabaId) ||
      entry.phoneNumberIds.some((id) => owners.has(id) && !isOwn(owners.get(id)?.wabaId)),
  );
  if (foreign.length === 0) return { body, foreignEntries: 0 };
  if (foreign.length === read.entries.length) return null;
  return { body: withoutEntries(read, foreign), foreignEntries: foreign.length };
}
