const ENTITY_TAG = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g;

/** Whether an If-None-Match header (RFC 9110 §13.1.2, weak comparison) names this strong tag, quotes included. */
export function isNoneMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  if (header.trim() === '*') return true;
  return (header.match(ENTITY_TAG) ?? []).some((tag) => tag.replace(/^W\//, '') === etag);
}

/** Whether a Range may be honoured: If-Range (§13.1.5) is absent or is this strong tag. We give out no dates. */
export function isRangeCurrent(header: string | undefined, etag: string): boolean {
  return header === undefined || header.trim() === etag;
}
