/** A list that forgets its oldest entries. */
export type BoundedList<Entry> = {
  add: (entry: Entry) => void;
  list: () => Entry[];
  /** Returns how many there were. */
  clear: () => number;
};

/** Creates an empty list of at most `maxEntries`. */
export function createBoundedList<Entry>(maxEntries: number): BoundedList<Entry> {
  let entries: Entry[] = [];
  return {
    add: (entry) => {
      entries.push(entry);
      if (entries.length > maxEntries) {
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

/** What was asked of the stand-in platform; tokens are never kept. */
export type LoggedRequest = {
  at: string;
  method: string;
  /** Without the query. */
  path: string;
  /** The media, phone number, account or catalog id in the path. */
  id: string;
  authorized: boolean;
  /** The answered HTTP status; null while open and for connections that were cut. */
  status: number | null;
};

/** The oldest are forgotten. */
export const MAX_LOGGED_REQUESTS = 1000;

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
