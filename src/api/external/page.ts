import { Type } from 'typebox';
import { ApiError } from '../errors/api-error.ts';
import type { PageCursors } from './page-cursor.ts';
import { parameter } from './schema-kit.ts';

const DEFAULT_LIMIT = 25;
const MAX_LIMIT = 100;

/** Query parameters of every list. */
export const PAGE_PARAMETERS = {
  limit: Type.Optional(
    parameter(
      Type.Integer({ minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT }),
      'How many entries a page has at most.',
      50,
    ),
  ),
  cursor: Type.Optional(
    parameter(
      Type.String(),
      '`nextCursor` of the page before, with the same filters. Left out: the first page.',
      'AAABlq3kZ0B2',
    ),
  ),
};

/** How many rows a page shows. */
export function pageSize(limit: number | undefined): number {
  return limit ?? DEFAULT_LIMIT;
}

/** How many rows to read for a page: one more than asked for tells whether there is another page. */
export function rowsToRead(limit: number | undefined): number {
  return pageSize(limit) + 1;
}

type Scope = Parameters<PageCursors['encode']>[0];

/** The position in the cursor of a request; null without one. Throws ApiError 400 for one that is not of this list. */
export function positionOf(
  cursors: PageCursors,
  scope: Scope,
  cursor: string | undefined,
): readonly string[] | null {
  if (cursor === undefined) return null;
  const position = cursors.decode(scope, cursor);
  if (position === null) throw new ApiError('invalid_cursor', { param: 'cursor' });
  return position;
}

/** A page of `rows`, which hold one more than `limit` when there is another page. */
export function pageOf<Row>(
  rows: readonly Row[],
  limit: number | undefined,
  cursorAfter: (row: Row) => string,
): { rows: readonly Row[]; hasMore: boolean; nextCursor: string | null } {
  const size = limit ?? DEFAULT_LIMIT;
  const shown = rows.slice(0, size);
  const last = shown.at(-1);
  const hasMore = rows.length > size;
  return { rows: shown, hasMore, nextCursor: hasMore && last !== undefined ? cursorAfter(last) : null };
}
