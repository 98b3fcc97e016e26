import type { SecretBox } from '../../../platform/crypto/secret-box.ts';
import type { CatalogProduct } from '../../../platform/graph/graph-calls.ts';
import type { GraphClient } from '../../../platform/graph/graph-client.ts';
import { storableText } from '../../../platform/json/storable-text.ts';
import { columnsOf } from '../../../platform/postgres/arrays.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { isDataError } from '../../../platform/postgres/error-class.ts';
import { execute, query } from '../../../platform/postgres/sql.ts';
import { openAccessToken } from '../../accounts/access-tokens.ts';
import type { Product } from './orders.ts';

export type ProductTools = {
  database: Database;
  graph: Pick<GraphClient, 'findProducts'>;
  secretBox: SecretBox;
};

/** Over token and lookup together: the order goes out without an answer after this time. */
const LOOKUP_DEADLINE_MS = 5_000;

/** No catalog has longer ids, and an index takes them. */
const MAX_ID_BYTES = 200;

const MAX_NAME_CHARS = 512;
const MAX_URL_CHARS = 2_048;

export type KnownProducts = {
  products: Map<string, Product>;
  /** A sentence; null when all went well. */
  problem: string | null;
};

/**
 * From the cache when it is younger than 24 hours, else from upstream, else from an old cache. Only a failing database is thrown; a catalog
 * that does not answer in 5 seconds is a `problem`.
 */
export async function findKnownProducts(
  tools: ProductTools,
  wabaId: string,
  catalogId: string | null,
  retailerIds: readonly string[],
): Promise<KnownProducts> {
  const askable = retailerIds.filter(isShort);
  if (catalogId === null || !isShort(catalogId) || askable.length === 0) {
    return { products: new Map(), problem: null };
  }
  const cached = await findCachedProducts(tools.database, wabaId, catalogId, askable);
  const fresh = new Set(cached.filter((product) => product.fresh).map((product) => product.retailerId));
  const wanted = askable.filter((retailerId) => !fresh.has(retailerId));
  if (wanted.length === 0) return { products: productMap(cached), problem: null };
  const lookup = await lookUp(tools, wabaId, catalogId, wanted);
  if ('problem' in lookup) return { products: productMap(cached), problem: lookup.problem };
  const problem = await keepProducts(tools.database, wabaId, catalogId, lookup.found);
  return { products: productMap([...cached, ...lookup.found]), problem };
}

function isShort(id: string): boolean {
  return Buffer.byteLength(id) <= MAX_ID_BYTES;
}

type FoundProduct = Pick<CachedProduct, 'retailerId' | 'name' | 'imageUrl'>;

async function lookUp(
  tools: ProductTools,
  wabaId: string,
  catalogId: string,
  wanted: readonly string[],
): Promise<{ found: FoundProduct[] } | { problem: string }> {
  const signal = AbortSignal.timeout(LOOKUP_DEADLINE_MS);
  try {
    const token = await openAccessToken(tools, wabaId);
    const answered = await tools.graph.findProducts(catalogId, wanted, token, signal);
    const byId = new Map(answered.map((product) => [product.retailerId, product]));
    // What was asked for and not answered is remembered as unknown.
    return { found: wanted.map((retailerId) => storable(retailerId, byId.get(retailerId))) };
  } catch (error) {
    if (signal.aborted) return { problem: `The catalog did not answer within ${LOOKUP_DEADLINE_MS} ms.` };
    const reason = error instanceof Error ? error.message : 'the catalog lookup failed';
    return { problem: `Products could not be looked up: ${reason}` };
  }
}

function storable(retailerId: string, product: CatalogProduct | undefined): FoundProduct {
  const name = product?.name ?? null;
  return {
    retailerId,
    name: name === null || name.trim() === '' ? null : storableText(name, MAX_NAME_CHARS),
    imageUrl: httpsUrl(product?.imageUrl ?? null),
  };
}

/** Only an absolute https address is passed on to tenants. */
function httpsUrl(address: string | null): string | null {
  if (address === null || address.length > MAX_URL_CHARS) return null;
  const url = URL.parse(address);
  return url?.protocol === 'https:' ? url.href : null;
}

/** Later entries go before earlier ones. */
function productMap(products: readonly FoundProduct[]): Map<string, Product> {
  return new Map(
    products.map(({ retailerId, name, imageUrl }) => [
      retailerId,
      { ...(name === null ? {} : { name }), ...(imageUrl === null ? {} : { imageUrl }) },
    ]),
  );
}

type CachedProduct = {
  retailerId: string;
  name: string | null;
  imageUrl: string | null;
  fresh: boolean;
};

async function findCachedProducts(
  database: Database,
  wabaId: string,
  catalogId: string,
  retailerIds: readonly string[],
): Promise<CachedProduct[]> {
  return await query<CachedProduct>(
    database,
    `select retailer_id as "retailerId", name, image_url as "imageUrl",
            fetched_at > now() - interval '24 hours' as fresh
       from catalog_products where waba_id = :wabaId and catalog_id = :catalogId and retailer_id = any (:retailerIds::text[])`,
    { wabaId, catalogId, retailerIds },
  );
}

/** Null: they are kept, also that a product is unknown. */
async function keepProducts(
  database: Database,
  wabaId: string,
  catalogId: string,
  products: readonly FoundProduct[],
): Promise<string | null> {
  // In one order everywhere, so that two lookups of the same products cannot deadlock.
  const sorted = products.toSorted((left, right) => (left.retailerId < right.retailerId ? -1 : 1));
  try {
    await execute(
      database,
      `insert into catalog_products (waba_id, catalog_id, retailer_id, name, image_url)
       select :wabaId, :catalogId, * from unnest(:retailerId::text[], :name::text[], :imageUrl::text[])
       on conflict (waba_id, catalog_id, retailer_id) do update
          set name = excluded.name, image_url = excluded.image_url, fetched_at = now()`,
      { wabaId, catalogId, ...columnsOf(sorted, 'retailerId', 'name', 'imageUrl') },
    );
    return null;
  } catch (error) {
    if (!(error instanceof Error) || !isDataError(error)) throw error;
    return `What the catalog answered could not be kept: ${error.message}`;
  }
}
