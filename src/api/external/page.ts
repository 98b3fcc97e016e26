import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { Type } from 'typebox';
import { ApiError } from '../errors/api-error.ts';
import { closed, optionalParameter } from './schema-kit.ts';

const DEFAULT_LIMIT = 25;
const MAX_LIMIT = 100;

export const PAGE_PARAMETERS = {
  limit: optionalParameter(
    Type.Integer({ minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT }),
    'How many entries a page has at most.',
    50,
  ),
  cursor: optionalParameter(
    Type.String(),
    '`nextCursor` of the previous page, with the same filters. Left out: the first page.',
    'AAABlq3kZ0B2',
  ),
};

export function pageSize(limit: number | undefined): number {
  return limit ?? DEFAULT_LIMIT;
}

type Scope = Parameters<PageCursors['encode']>[0];

/** Null without a cursor. Throws ApiError 400 for a cursor that is not of this list. */
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
  const size = pageSize(limit);
  const shown = rows.slice(0, size);
  const last = shown.at(-1);
  const hasMore = rows.length > size;
  return { rows: shown, hasMore, nextCursor: hasMore && last !== undefined ? cursorAfter(last) : null };
}

export function orderParameter(description: string, example: 'asc' | 'desc') {
  return optionalParameter(Type.Enum(['asc', 'desc'], { default: 'desc' }), description, example);
}

/** Its cursors are good for the same filter and order alone. */
export function walkOf(
  cursors: PageCursors,
  list: readonly string[],
  { limit, cursor, order = 'desc' }: { limit?: number; cursor?: string; order?: 'asc' | 'desc' },
  filter: object,
) {
  const scope = [...list, order, JSON.stringify(filter)];
  return {
    order,
    after: positionOf(cursors, scope, cursor) ?? [],
    limit: pageSize(limit),
    /** In ascending order there is always one, to go on from later. */
    nextCursor: (position: readonly string[] | null, hasMore: boolean): string | null =>
      position !== null && (hasMore || order === 'asc') ? cursors.encode(scope, position) : null,
  };
}

export const PageQuery = closed(PAGE_PARAMETERS);

type Listing<Row> = {
  name: string;
  /** Reads rows behind `after`, the position of the last row before; empty: the first rows. */
  find(after: readonly string[], limit: { limit?: number }): Promise<readonly Row[]>;
  position(row: Row): readonly string[];
};

/** The page of a list that a request asks for; for a command, which has no cursors, all that the list gives. */
export async function readPage<Row>(
  { cursors, wabaId }: { cursors: PageCursors | null; wabaId: string },
  { limit, cursor }: { limit?: number; cursor?: string },
  { name, find, position }: Listing<Row>,
): Promise<{ rows: readonly Row[]; hasMore: boolean; nextCursor: string | null }> {
  if (cursors === null) return { rows: await find([], {}), hasMore: false, nextCursor: null };
  const scope = [wabaId, name];
  const found = await find(positionOf(cursors, scope, cursor) ?? [], { limit: pageSize(limit) + 1 });
  return pageOf(found, limit, (row) => cursors.encode(scope, position(row)));
}

/** What a cursor is good for: owner, route and filters. A cursor made for another scope does not open. */
type CursorScope = readonly (string | null)[];

export type PageCursors = {
  encode(scope: CursorScope, position: readonly string[]): string;
  /** The position in a cursor; null when it was changed, made up, or made for another scope. */
  decode(scope: CursorScope, cursor: string): readonly string[] | null;
};

const MAC_BYTES = 16;
const CURSOR = /^[A-Za-z0-9_-]{24,1024}$/;

/**
 * Cursors that carry a position and a MAC over it and its scope. The first of `secrets` signs and all verify, so that
 * lists that are being read survive a change of secrets. There must be one at least.
 */
export function makePageCursors(secrets: readonly Uint8Array[]): PageCursors {
  const keys = secrets.map((secret) =>
    Buffer.from(hkdfSync('sha256', secret, '', 'heliograph page cursor', 32)),
  );
  const [current] = keys;
  if (current === undefined) throw new Error('page cursors need a secret');
  return {
    encode(scope, position) {
      const payload = Buffer.from(JSON.stringify(position));
      return Buffer.concat([mac(current, scope, payload), payload]).toString('base64url');
    },
    decode(scope, cursor) {
      if (!CURSOR.test(cursor)) return null;
      const bytes = Buffer.from(cursor, 'base64url');
      // Several spellings decode to the same bytes; only the one that was given out counts.
      if (bytes.length <= MAC_BYTES || bytes.toString('base64url') !== cursor) return null;
      const payload = bytes.subarray(MAC_BYTES);
      const given = bytes.subarray(0, MAC_BYTES);
      const isOurs = keys.some((key) => timingSafeEqual(mac(key, scope, payload), given));
      return isOurs ? (JSON.parse(payload.toString()) as string[]) : null;
    },
  };
}

function mac(key: Buffer, scope: CursorScope, payload: Buffer): Buffer {
  // A JSON array cannot run over into the payload: it ends where its bracket closes.
  return createHmac('sha256', key)
    .update(JSON.stringify(scope))
    .update(payload)
    .digest()
    .subarray(0, MAC_BYTES);
}
