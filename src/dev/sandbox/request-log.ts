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
