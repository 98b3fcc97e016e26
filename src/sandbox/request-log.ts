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

const MAX_ENTRIES = 1000;

/** A log that forgets its oldest entries. */
export type RequestLog = {
  add: (entry: LoggedRequest) => void;
  list: () => LoggedRequest[];
  clear: () => number;
};

/** Creates an empty log of at most 1000 requests. */
export function createRequestLog(): RequestLog {
  let entries: LoggedRequest[] = [];
  return {
    add: (entry) => {
      entries.push(entry);
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
