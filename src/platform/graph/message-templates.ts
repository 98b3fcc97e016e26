import { type GraphConnection, graphGet } from './graph-connection.ts';

export type TemplateFilter = Partial<Record<'name' | 'status' | 'category' | 'language', string>>;

export type TemplatePage = {
  /** As upstream describes them. */
  templates: Record<string, unknown>[];
  /** Upstream's cursor of the next page; null on the last. */
  after: string | null;
};

/** A template with examples has several KiB, and a page a hundred of them. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** One page of the message templates of a WABA: `GET /{waba}/message_templates`. Throws GraphError. */
export async function listMessageTemplates(
  connection: GraphConnection,
  wabaId: string,
  page: { filter: TemplateFilter; limit: number; after: string | null; token: string; timeoutMs: number },
): Promise<TemplatePage> {
  const { filter, limit, after, token, timeoutMs } = page;
  const { data, paging } = await graphGet(connection, {
    path: [wabaId, 'message_templates'],
    query: { ...filter, limit: String(limit), ...(after !== null && { after }) },
    token,
    timeoutMs,
    maxAnswerBytes: MAX_ANSWER_BYTES,
  });
  return { templates: Array.isArray(data) ? data.filter(isMembers) : [], after: nextCursor(paging) };
}

/** There is a next page only when upstream gives its address; the cursors are there on the last page too. */
function nextCursor(paging: unknown): string | null {
  if (!isMembers(paging) || paging.next === undefined || !isMembers(paging.cursors)) return null;
  const { after } = paging.cursors;
  return typeof after === 'string' && after !== '' ? after : null;
}

function isMembers(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
