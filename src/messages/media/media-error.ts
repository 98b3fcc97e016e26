/** Codes that tenants see in `mediaError` when media is never going to be there. */
export type MediaErrorCode =
  | 'media_gone'
  | 'media_too_large'
  | 'media_hash_mismatch'
  | 'media_expired'
  | 'access_token_invalid'
  | 'media_host_refused'
  | 'media_cancelled';

/** The public text of each code. */
export const MEDIA_ERROR_MESSAGES: Readonly<Record<MediaErrorCode, string>> = {
  media_gone: 'The upstream platform does not have this media any more.',
  media_too_large: 'The media is larger than this service stores.',
  media_hash_mismatch: 'The downloaded bytes differ from what the upstream platform announced.',
  media_expired: 'The media could not be fetched within the 7 days for which the upstream platform keeps it.',
  access_token_invalid:
    'The WABA had no valid upstream access token within the 7 days for which the upstream platform keeps media.',
  media_host_refused: 'The upstream platform offered the media at a host that this service does not trust.',
  media_cancelled: 'An operator gave up fetching this media.',
};

/** The media is larger than the limit: asking again does not help. */
export class MediaTooLarge extends Error {
  constructor(sizeBytes: number, maxBytes: number) {
    super(`The media has ${sizeBytes} bytes or more; the limit is ${maxBytes}.`);
    this.name = 'MediaTooLarge';
  }
}

/** What was downloaded is not what upstream announced. */
export class WrongBytes extends Error {
  constructor(difference: string) {
    super(`The downloaded bytes are wrong: ${difference}.`);
    this.name = 'WrongBytes';
  }
}
