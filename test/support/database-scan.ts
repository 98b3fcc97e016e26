import { createHash } from 'node:crypto';
import { Client } from 'minio';
import type { Config } from '../../src/platform/config/config.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';

/**
 * The forms in which a number can be read, or looked up: as it is, in base64 at each of the three offsets (upstream's
 * message ids hold it this way), and hashed without salt.
 */
export function formsOfNumber(number: string): string[] {
  const inBase64 = [0, 1, 2].map((offset) => {
    const text = Buffer.from(`${'\0'.repeat(offset)}${number}`)
      .toString('base64')
      .replaceAll('=', '');
    const isWhole = (offset + number.length) % 3 === 0;
    return text.slice(Math.ceil((offset * 8) / 6), isWhole ? undefined : -1);
  });
  const hashes = [number, `+${number}`].flatMap((written) =>
    ['sha256', 'sha1', 'md5'].flatMap((algorithm) => {
      const digest = createHash(algorithm).update(written).digest();
      return [
        digest.toString('hex'),
        digest.toString('base64').replaceAll('=', ''),
        digest.toString('base64url'),
      ];
    }),
  );
  return [...new Set([number, ...inBase64, ...hashes])];
}

/** Every table that holds one of these texts in any column, as text, JSON or bytes: `table: needle`. */
export async function tablesHolding(database: Database, needles: readonly string[]): Promise<string[]> {
  const tables = await query<{ name: string }>(
    database,
    `select table_name as name from information_schema.tables
      where table_schema = 'public' and table_type = 'BASE TABLE' order by 1`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    for (const needle of needles) {
      const forms = [needle, Buffer.from(needle).toString('hex'), JSON.stringify(needle).slice(1, -1)];
      const rows = await query<{ n: number }>(
        database,
        `select count(*)::integer as n from "${name}" as row
          where exists (select from unnest(cast(:forms as text[])) as f (form)
                         where position(lower(form) in lower(cast(row as text))) > 0)`,
        { forms },
      );
      if ((rows[0]?.n ?? 0) > 0) found.push(`${name}: ${needle}`);
    }
  }
  return found;
}

/** A client of the store itself, which may do everything. */
export function storeClient({ objectStore }: Pick<Config, 'objectStore'>): Client {
  const { url, accessKey, secretKey, region } = objectStore;
  const { hostname, port } = new URL(url);
  return new Client({ endPoint: hostname, port: Number(port), useSSL: false, accessKey, secretKey, region });
}

type Version = { name?: string; versionId?: string; isDeleteMarker?: boolean };

/** The names of all objects in the bucket, and those of which any version or its metadata holds one of these texts. */
export async function objectsHolding(
  config: Pick<Config, 'objectStore'>,
  needles: readonly string[],
): Promise<{ all: string[]; holding: string[] }> {
  const { bucket } = config.objectStore;
  const client = storeClient(config);
  const all: string[] = [];
  const holding: string[] = [];
  if (!(await client.bucketExists(bucket))) return { all, holding };
  for await (const found of client.listObjects(bucket, '', true, { IncludeVersion: true })) {
    const version = found as Version;
    const { name = '', isDeleteMarker = false } = version;
    if (!isDeleteMarker) all.push(name);
    const texts = [Buffer.from(name), ...(isDeleteMarker ? [] : await contentsOf(client, bucket, version))];
    if (needles.some((needle) => texts.some((text) => text.includes(needle)))) holding.push(name);
  }
  return { all, holding };
}

/** The bytes, the headers and the tags of a version. */
async function contentsOf(
  client: Client,
  bucket: string,
  { name = '', versionId = 'null' }: Version,
): Promise<Buffer[]> {
  const bytes = Buffer.concat(await (await client.getObject(bucket, name, { versionId })).toArray());
  const stat = await client.statObject(bucket, name, { versionId });
  const tags = await client.getObjectTagging(bucket, name, { versionId });
  return [bytes, Buffer.from(JSON.stringify([stat, tags]))];
}
