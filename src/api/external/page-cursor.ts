import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';

/** What a cursor is good for: owner, route and filters. A cursor made for another scope does not open. */
type CursorScope = readonly (string | null)[];

/** Makes and opens the opaque cursors of paged lists. */
export type PageCursors = {
  /** The cursor that goes on behind `position`, the sort values of a page's last row. */
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
