import { Client } from 'minio';
import type { Config } from '../../src/platform/config/config.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';

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

/** The names of all objects in the bucket, and those of them that hold one of these texts. */
export async function objectsHolding(
  { objectStore }: Pick<Config, 'objectStore'>,
  needles: readonly string[],
): Promise<{ all: string[]; holding: string[] }> {
  const { bucket, url, accessKey, secretKey } = objectStore;
  const { hostname, port } = new URL(url);
  const client = new Client({ endPoint: hostname, port: Number(port), useSSL: false, accessKey, secretKey });
  const all: string[] = [];
  const holding: string[] = [];
  if (!(await client.bucketExists(bucket))) return { all, holding };
  for await (const { name } of client.listObjectsV2(bucket, '', true)) {
    all.push(name);
    const bytes = Buffer.concat(await (await client.getObject(bucket, name)).toArray());
    if (needles.some((needle) => bytes.includes(needle) || name.includes(needle))) holding.push(name);
  }
  return { all, holding };
}
