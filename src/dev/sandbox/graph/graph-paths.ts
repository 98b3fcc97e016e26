/** The path of an object in any version of the API. */
export const GRAPH_OBJECT_PATH = '/:version(^v\\d+\\.\\d+$)/:id';

/** Types of a route on an object. */
export type GraphObjectRoute = {
  Params: { version: string; id: string };
  Querystring: {
    fields?: string;
    filter?: string;
    limit?: string;
    after?: string;
    name?: string;
    status?: string;
    category?: string;
    language?: string;
  };
};
