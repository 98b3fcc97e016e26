import { type GraphConnection, graphGet } from './graph-connection.ts';

/** A product of a catalog; name and image may be unknown. */
export type CatalogProduct = { retailerId: string; name: string | null; imageUrl: string | null };

/** Keeps the address of one call short enough for every proxy. */
const MAX_FILTER_CHARS = 4_000;
const MAX_IDS_PER_CALL = 50;
const PAGE_SIZE = 100;

/**
 * The products of a catalog with these retailer ids; unknown ones are absent. Several calls when there are many.
 * Throws GraphError; when `signal` aborts, its reason.
 */
export async function findProducts(
  connection: GraphConnection,
  catalogId: string,
  retailerIds: readonly string[],
  token: string,
  signal?: AbortSignal,
): Promise<CatalogProduct[]> {
  const products: CatalogProduct[] = [];
  for (const ids of batchesOf(retailerIds)) {
    const { data } = await graphGet(connection, {
      path: [catalogId, 'products'],
      query: {
        fields: 'id,retailer_id,name,image_url',
        filter: JSON.stringify({ retailer_id: { is_any: ids } }),
        limit: String(PAGE_SIZE),
      },
      token,
      signal,
    });
    products.push(...(Array.isArray(data) ? data.flatMap(productOf) : []));
  }
  return products;
}

function batchesOf(retailerIds: readonly string[]): string[][] {
  const batches: string[][] = [];
  let current: string[] = [];
  let currentChars = 0;
  for (const id of retailerIds) {
    const chars = encodeURIComponent(id.toWellFormed()).length + 10;
    if (
      current.length > 0 &&
      (current.length === MAX_IDS_PER_CALL || currentChars + chars > MAX_FILTER_CHARS)
    ) {
      batches.push(current);
      current = [];
      currentChars = 0;
    }
    current.push(id);
    currentChars += chars;
  }
  return current.length === 0 ? batches : [...batches, current];
}

function productOf(value: unknown): CatalogProduct[] {
  if (typeof value !== 'object' || value === null) return [];
  const { retailer_id: retailerId, name, image_url: imageUrl } = value as Record<string, unknown>;
  if (typeof retailerId !== 'string') return [];
  return [
    {
      retailerId,
      name: typeof name === 'string' ? name : null,
      imageUrl: typeof imageUrl === 'string' ? imageUrl : null,
    },
  ];
}
