import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { newSecretToken, secretTokenHash } from '../../../platform/crypto/secret-box.ts';
import { formCookie } from './session-cookie.ts';
import { type Viewer, viewerIfAny } from './viewer.ts';

declare module 'fastify' {
  interface FastifyInstance {
    portalFormTokens: FormTokens;
  }
}

/** The tokens that forms carry: the session's, and before there is one, the browser's. */
export type FormTokens = {
  /** For a form on a page that needs no session; may set a cookie. */
  issue(request: FastifyRequest, reply: FastifyReply): Pick<Viewer, 'csrfToken'>;
  /** Whether a form carries a token of this session, or of this browser on a page that needs no session. */
  isRight(request: FastifyRequest, token: string): boolean;
};

/** Form tokens of browsers without a session are MACs over a random cookie, so nothing is stored for strangers. */
export function createFormTokens(secrets: readonly Uint8Array[]): FormTokens {
  const keys = secrets.map((secret) =>
    Buffer.from(hkdfSync('sha256', secret, '', 'heliograph portal form', 32)),
  );
  const tokensOf = (cookie: string) =>
    keys.map((key) => createHmac('sha256', key).update(cookie).digest('base64url'));
  const browserTokens = (request: FastifyRequest) => {
    const cookie = formCookie.read(request);
    return cookie === null || secretTokenHash(cookie) === null ? [] : tokensOf(cookie);
  };
  return {
    issue(request, reply) {
      const [known] = browserTokens(request);
      const viewer = viewerIfAny(request);
      if (viewer !== null || known !== undefined) return { csrfToken: viewer?.csrfToken ?? known ?? '' };
      const cookie = newSecretToken();
      formCookie.set(reply, cookie);
      return { csrfToken: tokensOf(cookie)[0] ?? '' };
    },
    isRight(request, token) {
      const viewer = viewerIfAny(request);
      const isOpen = request.routeOptions.config.pageAccess === 'open';
      const right = [
        ...(viewer === null ? [] : [viewer.csrfToken]),
        ...(isOpen ? browserTokens(request) : []),
      ];
      return right.some((one) => isSame(one, token));
    },
  };
}

/** Of digests, which have one length. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
