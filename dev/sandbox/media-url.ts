import { createHmac, timingSafeEqual } from 'node:crypto';

/** Download addresses that end after a few minutes, as the platform's do. */
export type MediaUrls = {
  /** @param expired true makes an address that has ended already. */
  create: (mediaId: string, options?: { expired?: boolean; source?: string }) => string;
  /** False when the address has ended or was not made here. */
  isValid: (mediaId: string, query: { ext?: string; hash?: string }) => boolean;
};

/** Creates addresses below baseUrl() that live for lifetimeMs. */
export function createMediaUrls(options: {
  baseUrl: () => string;
  secret: string;
  lifetimeMs: number;
  now: () => number;
}): MediaUrls {
  const hashOf = (mediaId: string, ext: string) =>
    createHmac('sha256', options.secret).update(`${mediaId}.${ext}`).digest('hex').slice(0, 40);
  return {
    create: (mediaId, { expired = false, source } = {}) => {
      const endsAtMs = options.now() + (expired ? -1000 : options.lifetimeMs);
      const ext = String(Math.floor(endsAtMs / 1000));
      const origin = source === undefined ? '' : `source=${source}&`;
      return `${options.baseUrl()}/media-download/${mediaId}?${origin}ext=${ext}&hash=${hashOf(mediaId, ext)}`;
    },
    isValid: (mediaId, { ext = '', hash = '' }) => {
      const expected = Buffer.from(hashOf(mediaId, ext));
      const given = Buffer.from(hash);
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
        return false;
      }
      return Number(ext) * 1000 > options.now();
    },
  };
}
