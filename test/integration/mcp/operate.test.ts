import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { operationTools } from '../../../src/mcp/tool-list.ts';
import { addAccountObjects } from '../api/account-objects.ts';
import { apiOfFile, freshKeyHolder, type KeyHolder } from '../api/api-harness.ts';
import { publishOne } from '../deliveries/event-fixtures.ts';
import { listen, type McpClient, stdioClient } from './mcp-clients.ts';

const api = apiOfFile();
let url: string;
let holder: KeyHolder;
let mcp: McpClient;

beforeAll(async () => {
  url = await listen(api.app);
});
beforeEach(async () => {
  holder = await freshKeyHolder(api.database);
  await addAccountObjects(api.database, { wabaId: holder.wabaId, phoneNumberId: holder.number });
  mcp = await stdioClient({ HELIOGRAPH_URL: url, HELIOGRAPH_API_KEY: holder.key }, ['--allow', 'operate']);
});
afterEach(() => mcp.close());

const done = async (name: string, args: Record<string, unknown>) => {
  const { isError, text } = await mcp.call(name, args);
  expect([isError, text]).toEqual([false, text]);
  return JSON.parse(text);
};

test('only what was allowed is there, and a host sees what changes something', async () => {
  const { tools } = await mcp.client.listTools();
  const operate = operationTools(['operate']).filter(({ level }) => level === 'operate');
  const changing = tools.filter(({ annotations }) => annotations?.readOnlyHint !== true);
  expect(changing.map(({ name }) => name)).toEqual(operate.map(({ operation }) => operation.id));
  const hints = Object.fromEntries(changing.map(({ name, annotations }) => [name, annotations]));
  expect(hints.cancelReplay).toMatchObject({ destructiveHint: true, idempotentHint: true });
  expect(hints.retryDelivery).toMatchObject({ destructiveHint: false, idempotentHint: false });
  expect(tools.map(({ name }) => name)).not.toContain('sendMessage');
});

test('an endpoint is paused and enabled', async () => {
  const [{ id }] = (await done('listWebhookEndpoints', {})).data;
  expect(await done('pauseWebhookEndpoint', { id, reason: 'release' })).toMatchObject({
    mode: 'paused',
    modeReason: 'release',
  });
  const { isError, text } = await mcp.call('enableWebhookEndpoint', { id, waiting: 'drop' });
  expect([isError, text]).toEqual([true, expect.stringMatching(/waiting.* can only be send/)]);
  expect(await done('getWebhookEndpoint', { id })).toMatchObject({ mode: 'paused' });
  expect(await done('enableWebhookEndpoint', { id, waiting: 'send' })).toMatchObject({ mode: 'open' });
});

test('failed deliveries are counted and sent again, and the replay is stopped', async () => {
  const [{ id }] = (await done('listWebhookEndpoints', {})).data;
  const selection = { endpointId: id, states: ['failed'] };
  expect(await done('startReplay', { ...selection, dryRun: true })).toMatchObject({
    dryRun: true,
    deliveries: 2,
  });
  const [event] = (await done('listEvents', { state: 'failed' })).data;
  const replay = await done('replayEvent', { id: event.id, endpointId: id });
  expect(await done('pauseReplay', { id: replay.id })).toMatchObject({ id: replay.id, state: 'paused' });
  expect(await done('cancelReplay', { id: replay.id })).toMatchObject({ id: replay.id, state: 'cancelled' });
});

test('a pending delivery is retried', async () => {
  const eventId = await publishOne(api.database, 'new', {
    wabaId: holder.wabaId,
    phoneNumberId: holder.number,
  });
  const { deliveries } = await done('getEvent', { id: eventId });
  const [{ id }] = deliveries;
  expect(await done('retryDelivery', { id })).toMatchObject({ id, state: 'pending' });
});
