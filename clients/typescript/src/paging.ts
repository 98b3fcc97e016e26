/** A page of a list of the API. */
type Page<Entry> = { data: Entry[]; hasMore: boolean; nextCursor: string | null };

/** Each entry of a list, page by page: the next page is asked for when its first entry is. */
export async function* entriesOf<Entry>(
  pageAt: (cursor: string | undefined) => Promise<{ data: Page<Entry> }>,
  first?: string,
): AsyncGenerator<Entry, void, undefined> {
  let cursor = first;
  for (;;) {
    const { data: page } = await pageAt(cursor);
    yield* page.data;
    // In ascending order there is a cursor behind the last page too, to continue from later.
    if (!page.hasMore || page.nextCursor === null) return;
    cursor = page.nextCursor;
  }
}

/** The options of a list with the cursor of a page. */
export function at<Given extends object, Query>(
  options: Given,
  query: Query,
  cursor: string | undefined,
): Given {
  return cursor === undefined ? options : { ...options, query: { ...query, cursor } };
}
