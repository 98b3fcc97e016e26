/** Texts of error codes, for the refusals here and for the table of all codes. */
export const SEND_REFUSALS = {
  unknown_media: 'There is no such uploaded file.',
  media_expired: 'The uploaded file has expired.',
  idempotency_key_in_flight: 'A request with this Idempotency-Key is still in progress.',
  idempotency_key_reused: 'The Idempotency-Key was used with another body.',
} as const;
