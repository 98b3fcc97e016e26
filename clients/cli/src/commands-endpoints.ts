import type { WebhookEndpoint } from '../../typescript/src/generated/types.gen.js';
import type { ApiClient } from './api-client.ts';
import type { Command } from './command.ts';
import { EXIT } from './failure.ts';
import { table } from './output.ts';

/** All endpoints of the WABA. */
export async function listEndpoints(api: ApiClient): Promise<WebhookEndpoint[]> {
  const found: WebhookEndpoint[] = [];
  for (let cursor: string | undefined; ; ) {
    type Page = { data: WebhookEndpoint[]; hasMore: boolean; nextCursor: string | null };
    const page = await api.call<Page>('GET', '/api/external/webhook-endpoints', { query: { cursor } });
    found.push(...page.data);
    if (!page.hasMore || page.nextCursor === null) return found;
    cursor = page.nextCursor;
  }
}

export const endpoints: Command = {
  name: 'endpoints',
  summary: 'list webhook endpoints with their ids',
  details: 'The ids are what --to and --endpoint take.',
  examples: ['heliograph endpoints'],
  async run({ api, output, isJson }) {
    const found = await listEndpoints(api());
    if (isJson) output.json(found);
    else if (found.length === 0) output.note('There is no endpoint yet.');
    else {
      const rows = found.map(({ id, mode, eventTypes, waiting, url, description }) => [
        ...[id, mode, eventTypes?.join(', ') ?? 'all', `${waiting.count}${waiting.more ? '+' : ''}`],
        ...[url, description],
      ]);
      output.line(table(['ID', 'MODE', 'EVENT TYPES', 'WAITING', 'URL', 'DESCRIPTION'], rows));
    }
    return EXIT.ok;
  },
};
