import { type Audited, recordBy } from '../../platform/audit/audit.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import type { SealedColumn } from '../../platform/crypto/sealed-secret.ts';
import { openOrNull } from '../../platform/crypto/secret-box.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import { SEALED_COLUMNS } from './sealed-columns.ts';

export type SecretStatus = {
  currentKeyId: string;
  retirableKeyIds: string[];
  stored: (SealedCount & { isKnown: boolean })[];
};

/** Sealed texts that do not open: their key is missing, or is not the one that had this id. */
export type UnreadableSecrets = { table: string; column: string; keyId: string };

const BATCH = 100;

export async function secretStatus({ database, secretBox }: SealedDatabase): Promise<SecretStatus> {
  const counts = await countSealed(database);
  const needed = new Set(counts.map(({ keyId }) => keyId));
  const [currentKeyId = '', ...others] = secretBox.keyIds;
  return {
    currentKeyId,
    retirableKeyIds: others.filter((id) => !needed.has(id)),
    stored: counts.map((count) => ({ ...count, isKnown: secretBox.keyIds.includes(count.keyId) })),
  };
}

export async function unreadableSecrets({
  database,
  secretBox,
}: SealedDatabase): Promise<UnreadableSecrets[]> {
  const found: UnreadableSecrets[] = [];
  for (const place of SEALED_COLUMNS) {
    for (const text of await sampleSealed(database, place)) {
      if (openOrNull(secretBox, text.sealed, place.place(text.id)) !== null) continue;
      const { table, column } = place;
      found.push({ table, column, keyId: text.sealed.split(':')[1] ?? '' });
    }
  }
  return found;
}

type Log = { error(about: object, message: string): void; warn(about: object, message: string): void };

/** Says at the start of a process that stored secrets cannot be opened. Nothing waits for it. */
export async function reportUnreadableSecrets(tools: SealedDatabase, logger: Log): Promise<void> {
  try {
    const unreadable = await unreadableSecrets(tools);
    if (unreadable.length === 0) return;
    logger.error(
      { unreadable, keyIds: tools.secretBox.keyIds },
      'stored secrets cannot be opened with HELIOGRAPH_ENCRYPTION_KEYS: put the missing keys back (admin secrets status)',
    );
  } catch (error) {
    logger.warn({ err: error }, 'could not check stored secrets');
  }
}

export type Reencryption = {
  keyId: string;
  reencrypted: number;
  /** What others than `keyId` are still needed for: their keys are missing or wrong. */
  remaining: SealedCount[];
};

/**
 * Encrypts with the first key whatever another one encrypted, row by row: each is replaced only if it is still what was
 * read, so that a change meanwhile wins. What a change copies meanwhile is found by another pass; cut off, it goes on
 * where it was when it is called again. `onProgress` gets the number so far.
 */
export async function reencryptSecrets(
  tools: SealedDatabase & Audited,
  onProgress: (reencrypted: number) => void = () => {},
): Promise<Reencryption> {
  const { database, secretBox, actor } = tools;
  const keyId = secretBox.keyIds[0] ?? '';
  let reencrypted = 0;
  let ofPass: number;
  do {
    ofPass = 0;
    for (const place of SEALED_COLUMNS) {
      ofPass += await reencryptColumn(tools, place, (n) => onProgress(reencrypted + ofPass + n));
    }
    reencrypted += ofPass;
  } while (ofPass > 0);
  const remaining = (await countSealed(database)).filter((count) => count.keyId !== keyId);
  const left = remaining.reduce((sum, { count }) => sum + count, 0);
  const about = { tenantId: null, wabaId: null, target: `encryption key ${keyId}` };
  await recordBy(database, actor, { ...about, action: 'secrets.reencrypted', detail: { reencrypted, left } });
  return { keyId, reencrypted, remaining };
}

/** Returns how many it replaced; what does not open stays as it is. */
async function reencryptColumn(
  { database, secretBox }: SealedDatabase,
  place: SealedColumn,
  onProgress: (replaced: number) => void,
): Promise<number> {
  const keyId = secretBox.keyIds[0] ?? '';
  let replaced = 0;
  let texts: SealedText[] = [];
  do {
    const afterId: string | null = texts.at(-1)?.id ?? null;
    texts = await readSealedByOthers(database, place, { keyId, afterId, limit: BATCH });
    for (const text of texts) {
      const plain = openOrNull(secretBox, text.sealed, place.place(text.id));
      if (plain === null) continue;
      const resealed = secretBox.seal(plain, place.place(text.id));
      if (await replaceSealed(database, place, { ...text, resealed })) replaced += 1;
    }
    if (texts.length > 0) onProgress(replaced);
  } while (texts.length === BATCH);
  return replaced;
}

export type SealedCount = { table: string; column: string; keyId: string; count: number };

type SealedText = { id: string; sealed: string };

const keyIdOf = (column: string) => `split_part(${column}, ':', 2)`;

export async function countSealed(database: Database): Promise<SealedCount[]> {
  const counts = SEALED_COLUMNS.map(
    ({ table, column }) =>
      `select '${table}' as table, '${column}' as column, ${keyIdOf(column)} as "keyId", count(*)::integer as count
         from ${table} where ${column} is not null group by 3`,
  );
  return await query<SealedCount>(database, `${counts.join(' union all ')} order by 1, 2, 3`);
}

/** One sealed text of every key in a column, to see whether it opens. */
async function sampleSealed(
  database: Database,
  { table, column, idColumn }: SealedColumn,
): Promise<SealedText[]> {
  return await query<SealedText>(
    database,
    `select distinct on (${keyIdOf(column)}) cast(${idColumn} as text) as id, ${column} as sealed
       from ${table} where ${column} is not null order by ${keyIdOf(column)}`,
  );
}

/** Sealed texts of a column that another key than `keyId` made, in the order of their rows' keys. */
async function readSealedByOthers(
  database: Database,
  { table, column, idColumn, idType }: SealedColumn,
  { keyId, afterId, limit }: { keyId: string; afterId: string | null; limit: number },
): Promise<SealedText[]> {
  const after = afterId === null ? '' : `and ${idColumn} > cast(:afterId as ${idType})`;
  return await query<SealedText>(
    database,
    `select cast(${idColumn} as text) as id, ${column} as sealed from ${table}
      where ${column} is not null and ${keyIdOf(column)} <> :keyId ${after} order by ${table}.${idColumn} limit :limit`,
    { keyId, limit, ...(afterId !== null && { afterId }) },
  );
}

/** Puts a sealed text in the place of another; false when that is not there any more. */
async function replaceSealed(
  database: Database,
  { table, column, idColumn, idType }: SealedColumn,
  { id, sealed, resealed }: SealedText & { resealed: string },
): Promise<boolean> {
  const own = `${idColumn} = cast(:id as ${idType}) and ${column} = :sealed`;
  const text = `update ${table} set ${column} = :resealed where ${own}`;
  return (await execute(database, text, { id, sealed, resealed })) === 1;
}
