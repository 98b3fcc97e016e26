/** A message that the stand-in platform took. */
export type SentMessage = {
  at: string;
  id: string;
  phoneNumberId: string;
  /** The body of the request as it came. */
  body: unknown;
};

const MAX_ENTRIES = 10_000;

/** The messages that were taken; the oldest are forgotten. */
export type SentMessages = {
  add: (message: SentMessage) => void;
  list: () => SentMessage[];
  clear: () => number;
};

/** Creates an empty list of at most 10,000 messages. */
export function createSentMessages(): SentMessages {
  let entries: SentMessage[] = [];
  return {
    add: (message) => {
      entries.push(message);
      if (entries.length > MAX_ENTRIES) {
        entries.shift();
      }
    },
    list: () => entries,
    clear: () => {
      const count = entries.length;
      entries = [];
      return count;
    },
  };
}
