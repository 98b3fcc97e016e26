/** A message that the stand-in platform took. */
export type SentMessage = {
  at: string;
  id: string;
  phoneNumberId: string;
  /** The body of the request as it came. */
  body: unknown;
};

/** A read receipt that the stand-in platform took. */
export type ReadReceipt = { at: string; phoneNumberId: string; body: unknown };

/** The oldest are forgotten. */
export const MAX_SENT_MESSAGES = 10_000;
