const MAX_LIMIT = 100;
const DEFAULT_LIMIT = 25;

/** One page of a list in the form of the Graph API. */
type GraphPage<Item> = {
  data: Item[];
  paging?: { cursors: { before: string; after: string }; next?: string };
};

function cursorOf(index: number): string {
  return Buffer.from(`i${index}`).toString('base64url');
}

function indexAfter(cursor: string | undefined): number {
  const index = Number(
    Buffer.from(cursor ?? '', 'base64url')
      .toString()
      .slice(1),
  );
  return cursor !== undefined && Number.isSafeInteger(index) && index >= 0 ? index + 1 : 0;
}

/**
 * Cuts one page out of a list.
 * @param url the absolute address of the request, from which `paging.next` is made.
 */
export function graphPage<Item>(
  items: readonly Item[],
  query: { limit?: string; after?: string },
  url: string,
): GraphPage<Item> {
  const asked = Number(query.limit ?? DEFAULT_LIMIT);
  const limit = Number.isSafeInteger(asked) && asked > 0 ? Math.min(asked, MAX_LIMIT) : DEFAULT_LIMIT;
  const start = indexAfter(query.after);
  const data = items.slice(start, start + limit);
  if (data.length === 0) {
    return { data };
  }
  const lastIndex = start + data.length - 1;
  const cursors = { before: cursorOf(start), after: cursorOf(lastIndex) };
  if (lastIndex + 1 >= items.length) {
    return { data, paging: { cursors } };
  }
  const next = new URL(url);
  next.searchParams.set('after', cursors.after);
  return { data, paging: { cursors, next: next.href } };
}

/** The path of an object in any version of the API. */
export const GRAPH_OBJECT_PATH = '/:version(^v\\d+\\.\\d+$)/:id';

/** Types of a route on an object. */
export type GraphObjectRoute = {
  Params: { version: string; id: string };
  Querystring: {
    fields?: string;
    filter?: string;
    limit?: string;
    after?: string;
    name?: string;
    status?: string;
    category?: string;
    language?: string;
    languages?: string;
    summary?: string;
    hsm_id?: string;
    source?: string;
    code?: string;
    prefilled_message?: string;
    generate_qr_image?: string;
  };
};
