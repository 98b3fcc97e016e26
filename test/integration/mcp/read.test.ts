import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { operationTools } from '../../../src/mcp/tool-list.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { addAccountObjects } from '../api/account-objects.ts';
import { apiOfFile, freshKeyHolder, type KeyHolder } from '../api/api-harness.ts';
import { pastMs, publishOne } from '../deliveries/event-fixtures.ts';
import { ERAS, type Era, listen, type McpClient, stdioClient } from './mcp-clients.ts';

/** The largest answer, with room for the note that something was cut. */
const MAX_CHARS = 50_100;

const api = apiOfFile();
let url: string;
/** Its account is read only; a test that adds something has a holder of its own. */
let holder: KeyHolder;
let mcp: McpClient;

beforeAll(async () => {
  url = await listen(api.app);
  holder = await freshKeyHolder(api.database);
  await addAccountObjects(api.database, { wabaId: holder.wabaId, phoneNumberId: holder.number });
  await execute(
    api.database,
    `insert into attempts (delivery_id, attempt, waba_id, endpoint_id, started_at, duration_ms, reused, status_code, url, user_agent,
                           custom_headers, worker)
     select id, 1, waba_id, endpoint_id, now(), 20, false, 503, 'https://shop.example/hook', 'Heliograph/0.9', '', 'w'
       from deliveries`,
    {},
  );
  mcp = await host(holder);
});
afterAll(() => mcp.close());

const host = ({ key }: KeyHolder, era: Era = 'legacy') =>
  stdioClient({ HELIOGRAPH_URL: url, HELIOGRAPH_API_KEY: key }, [], era);

/** A tenant with a host, for one test. */
async function freshHost() {
  const own = await freshKeyHolder(api.database);
  const client = await host(own);
  onTestFinished(() => client.close());
  return { ...own, client };
}

const rest = async (path: string) =>
  (await api.app.inject({ url: path, headers: { authorization: holder.authorization } })).body;

const readJson = async (name: string, args = {}) => {
  const { isError, text } = await mcp.call(name, args);
  expect([isError, text]).toEqual([false, text]);
  return JSON.parse(text);
};

const codeOf = async (name: string, args: Record<string, unknown>, client = mcp) => {
  const { isError, text } = await client.call(name, args);
  const { code, message } = JSON.parse(text).error;
  expect([isError, message]).toEqual([true, expect.stringMatching(/.{10}/)]);
  return code;
};

test('unless more is allowed there are only tools that read, and a host sees that', async () => {
  const { tools } = await mcp.client.listTools();
  expect(tools.map(({ name }) => name)).toEqual([
    ...operationTools([]).map(({ operation }) => operation.id),
    'searchDocs',
  ]);
  expect(tools.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['listEvents', 'getEvent', 'getWebhookEndpointStatistics', 'searchConversations']),
  );
  const readOnly = { readOnlyHint: true, destructiveHint: false, idempotentHint: true };
  for (const { name, annotations } of tools) expect(annotations, name).toMatchObject(readOnly);
  await expect(mcp.call('pauseWebhookEndpoint', { id: '1' })).rejects.toThrow(/pauseWebhookEndpoint/);
});

test.each(ERAS)('a host that begins with %s gets the same answer as a client of the API', async (era) => {
  const begun = await host(holder, era);
  const { text } = await begun.call('listEvents', { limit: 2 });
  await begun.close();
  expect(text).toBe(await rest('/api/external/events?limit=2'));
});

describe('reading', () => {
  test('events, with deliveries and attempts', async () => {
    const [event] = (await readJson('listEvents', { state: 'failed' })).data;
    const { deliveries } = await readJson('getEvent', { id: event.id });
    const [{ state, attempts }] = deliveries;
    expect([state, attempts]).toEqual(['failed', [expect.objectContaining({ statusCode: 503 })]]);
  });

  test('the health of an endpoint', async () => {
    const [{ id }] = (await readJson('listWebhookEndpoints')).data;
    expect(await readJson('getWebhookEndpoint', { id })).toMatchObject({ id, mode: 'open' });
    expect(await readJson('getWebhookEndpointStatistics', { id })).toHaveProperty('data');
    expect((await readJson('listEndpointAlerts')).data).not.toEqual([]);
  });

  test('conversations and messages; a phone number is in no address', async () => {
    const [{ id }] = (await readJson('searchConversations', { phoneNumberId: holder.number })).data;
    const messages = await readJson('listConversationMessages', { id });
    expect(messages.data).not.toEqual([]);
    const { tools } = await mcp.client.listTools();
    expect(tools.map(({ name }) => name)).not.toContain('listConversations');
  });

  test('the documentation', async () => {
    const { data } = await readJson('searchDocs', { query: 'how do I check the signature', limit: 2 });
    expect(data).toHaveLength(2);
    const found = (document: string) => ({ document, headings: expect.stringContaining('signature') });
    expect(data).toMatchObject([found('webhooks.md'), found('signatures.md')]);
  });
});

describe('paging', () => {
  test('goes on with the cursor until every entry was there once', async () => {
    const all = JSON.parse(await rest('/api/external/events')).data.map(({ id }: { id: string }) => id);
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await readJson('listEvents', { limit: 1, ...(cursor !== undefined && { cursor }) });
      seen.push(...page.data.map(({ id }: { id: string }) => id));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(seen).toEqual(all);
  });

  test('a page that is too large becomes shorter, and its cursor loses nothing', async () => {
    const { wabaId, number: phoneNumberId, client } = await freshHost();
    const dataJson = JSON.stringify({ text: 'x'.repeat(20_000) });
    for (let index = 0; index < 6; index += 1) {
      await publishOne(api.database, `large-${index}`, {
        wabaId,
        phoneNumberId,
        dataJson,
        at: pastMs(index),
      });
    }
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const { text } = await client.call('listEvents', cursor === undefined ? {} : { cursor });
      expect(text.length).toBeLessThan(MAX_CHARS);
      const page = JSON.parse(text);
      seen.push(...page.data.map(({ eventId }: { eventId: string }) => eventId));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(seen).toEqual([5, 4, 3, 2, 1, 0].map((index) => `large-${index}`));
  });

  test('one entry that is too large is cut, and says so', async () => {
    const { wabaId, number: phoneNumberId, client } = await freshHost();
    const dataJson = JSON.stringify({ text: '👋'.repeat(40_000) });
    const id = await publishOne(api.database, 'huge', { wabaId, phoneNumberId, dataJson, at: pastMs(0) });
    const { text } = await client.call('getEvent', { id });
    expect(text.length).toBeLessThan(MAX_CHARS);
    expect(text).toMatch(/\[cut after 50000 of \d+ characters\]$/);
  });
});

describe('an error of the API is an error of the tool, with code and message', () => {
  test.each([
    ['getEvent', { id: 'evt_00000000000000000000000000000000' }, 'not_found'],
    ['listEvents', { cursor: 'AAAA' }, 'invalid_cursor'],
    ['listEvents', { limit: 'many' }, 'invalid_parameter'],
    ['listEvents', { unknown: 1 }, 'invalid_parameter'],
    ['searchConversations', { unknown: 1 }, 'invalid_parameter'],
    ['getEvent', {}, 'invalid_parameter'],
    ['listConversationMessages', { id: '..' }, 'invalid_parameter'],
    ['getEvent', { id: '../webhook-endpoints' }, 'not_found'],
    ['getEvent', { id: '' }, 'invalid_parameter'],
    ['searchDocs', { query: 7 }, 'invalid_parameter'],
  ])('%s %j: %s', async (name, args, code) => {
    expect(await codeOf(name, args)).toBe(code);
  });

  test('also when the key lacks the scope, and when it is revoked', async () => {
    const { keyId, client } = await freshHost();
    await execute(api.database, `update api_keys set scopes = '{read_events}' where id = :keyId`, { keyId });
    expect(await codeOf('searchConversations', {}, client)).toBe('insufficient_scope');
    expect((await client.call('listEvents')).isError).toBe(false);
    await execute(api.database, 'update api_keys set revoked_at = now() where id = :keyId', { keyId });
    expect(await codeOf('listEvents', {}, client)).toBe('invalid_api_key');
    await client.close();
    expect(client.stderr()).toBe('');
  });
});
