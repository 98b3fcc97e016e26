import type { LightMyRequestResponse } from 'fastify';
import { expect } from 'vitest';
import { addKey, type TestApi } from './api-harness.ts';

export type Row = Record<string, unknown> & { id: string; serviceMessageId: string };
type Page = { data: Row[]; hasMore: boolean; nextCursor: string | null };

export type ApiClient = {
  get(url: string): Promise<LightMyRequestResponse>;
  page(url: string): Promise<Page>;
  /** All pages, with something done between them. */
  walk(url: string, between?: () => Promise<unknown>): Promise<Row[]>;
};

/** Reads lists with a key of the fixtures' WABA. */
export async function apiClient(api: TestApi): Promise<ApiClient> {
  const { authorization } = await addKey(api.database);
  const get = async (url: string) => await api.app.inject({ url, headers: { authorization } });
  const page = async (url: string) => {
    const response = await get(url);
    if (response.statusCode !== 200) throw new Error(`${url}: ${response.body}`);
    return response.json<Page>();
  };
  const walk = async (url: string, between: () => Promise<unknown> = async () => {}) => {
    const rows: Row[] = [];
    for (let next = url; ; ) {
      const found = await page(next);
      // Upwards the cursor is there at the end too, to go on from later.
      if (!url.includes('order=asc')) expect(found.nextCursor !== null).toBe(found.hasMore);
      rows.push(...found.data);
      if (!found.hasMore) return rows;
      await between();
      next = `${url}&cursor=${found.nextCursor}`;
    }
  };
  return { get, page, walk };
}
