import type { FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyRequest {
    /** The only origin whose pages may have this page in a frame; null: none. */
    portalFrameOrigin: string | null;
  }
}

const FRAMES = new Set(['iframe', 'frame', 'embed', 'object']);

/** Scripts of our pages say with what they fetch that they are in a frame. */
const FRAMED_HEADER = 'x-heliograph-framed';

/**
 * Whether a page is for a frame. Browsers say so, and no script can say otherwise of a page. What a frame has is apart:
 * its cookies open no page outside, and those outside none in a frame.
 */
export function isFramed(request: Pick<FastifyRequest, 'headers'>): boolean {
  const dest = request.headers['sec-fetch-dest'];
  return dest === 'empty' ? request.headers[FRAMED_HEADER] === '1' : FRAMES.has(String(dest));
}

/** Whether a session, or a link, may be where it is: in a frame of its origin, or in none. */
export function isInPlace(
  request: Pick<FastifyRequest, 'headers'>,
  link: { embedOrigin: string | null } | null,
): boolean {
  return isFramed(request) === ((link?.embedOrigin ?? null) !== null);
}
