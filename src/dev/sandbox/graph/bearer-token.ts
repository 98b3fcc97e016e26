import { createHash, timingSafeEqual } from 'node:crypto';

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** True when the Authorization header carries an acceptable token: the given one, or any without one. */
export function hasValidToken(authorization: string | undefined, accessToken: string | undefined): boolean {
  const token = /^Bearer (\S+)$/.exec(authorization ?? '')?.[1];
  if (token === undefined) {
    return false;
  }
  return accessToken === undefined || timingSafeEqual(digest(token), digest(accessToken));
}
