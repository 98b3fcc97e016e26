import type { Database } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';

/** What was learnt of a product. Without name and image the catalog did not know it. */
export type CachedProduct = {
  retailerId: string;
  name: string | null;
  imageUrl: string | null;
  /** Whether it was looked up within the last 24 hours. */
  fresh: boolean;
};

/** What is known of these products of a WABA's catalog, however old. */
export async function findCachedProducts(
  database: Database,
  wabaId: string,
  catalogId: string,
  retailerIds: readonly string[],
): Promise<CachedProduct[]> {
  return await query<CachedProduct>(
    database,
    `select retailer_id as "retailerId", name, image_url as "imageUrl",
            fetched_at > now() - interval '24 hours' as fresh
       from catalog_products where waba_id = ? and catalog_id = ? and retailer_id = any (?::text[])`,
    [wabaId, catalogId, retailerIds],
  );
}

/** Remembers the answers of a lookup, also that a product is unknown. */
export async function saveCachedProducts(
  database: Database,
  wabaId: string,
  catalogId: string,
  products: readonly { retailerId: string; name: string | null; imageUrl: string | null }[],
): Promise<void> {
  // In one order everywhere, so that two lookups of the same products cannot deadlock.
  const sorted = products.toSorted((left, right) => (left.retailerId < right.retailerId ? -1 : 1));
  await execute(
    database,
    `insert into catalog_products (waba_id, catalog_id, retailer_id, name, image_url)
     select ?, ?, * from unnest(?::text[], ?::text[], ?::text[])
     on conflict (waba_id, catalog_id, retailer_id) do update
        set name = excluded.name, image_url = excluded.image_url, fetched_at = now()`,
    [
      wabaId,
      catalogId,
      sorted.map((product) => product.retailerId),
      sorted.map((product) => product.name),
      sorted.map((product) => product.imageUrl),
    ],
  );
}
