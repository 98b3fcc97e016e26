import type { Client } from '@temporalio/client';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { buildApp } from '../../../src/api/app.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { reencryptSecrets } from '../../../src/ops/secrets/secret-keys.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { openEventIdHash } from '../../../src/platform/crypto/installation-secret.ts';
import { makeSecretBox } from '../../../src/platform/crypto/secret-box.ts';
import { openLogger } from '../../../src/platform/logger.ts';
import { openObjectStore } from '../../../src/platform/object-store/object-store.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { runAdmin } from '../../support/admin-cli.ts';
import { formsOfNumber } from '../../support/database-scan.ts';
import { openDeliveries } from '../../support/receiving-tenant.ts';
import { addEndpoint, testEventIdHash } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';
import { fixtureBodyTo } from '../../support/upstream-fixtures.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';
import { startSendingBase } from '../messages/send/sending-stack.ts';

/** Of the fixtures, and of the recipients below. */
const CUSTOMERS = ['12025550143', '12025550177', '12025550178'];

let base: Awaited<ReturnType<typeof startSendingBase>>;
let environment: TestWorkflowEnvironment;

beforeAll(async () => {
  base = await startSendingBase({ HELIOGRAPH_DELIVERY_WORKFLOWS: 'always' });
  environment = await TestWorkflowEnvironment.createFromExistingServer({
    address: inject('infrastructure').temporalAddress,
  });
});

afterAll(async () => {
  await environment?.teardown();
  await base?.close();
});

const BASE64_RUN = /[A-Za-z0-9+/_-]{12,}={0,2}/g;

/** A text and everything that it holds in base64, at any depth: payloads hold JSON, and wamids hold a number. */
function readings(text: string, depth = 0): string[] {
  if (depth > 3) return [text];
  const runs = text.match(BASE64_RUN) ?? [];
  return [text, ...runs.flatMap((run) => readings(Buffer.from(run, 'base64').toString('latin1'), depth + 1))];
}

/** The customers' numbers, and upstream's message ids, that can be read from a text. */
function tracesIn(text: string): string[] {
  const all = readings(text);
  const numbers = CUSTOMERS.filter((number) => all.some((reading) => reading.includes(number)));
  const ids = all.flatMap((reading) => reading.match(/wamid\.\S*/g) ?? []);
  return [...numbers, ...ids];
}

/** Every text in a value: bytes are payloads, which hold JSON. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (value instanceof Uint8Array) return [Buffer.from(value).toString()];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsIn(member)]);
}

/** All that Temporal keeps of the workflows of these task queues: visibility records, descriptions, whole histories. */
async function everythingOf(client: Client, prefix: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for await (const { workflowId, raw } of client.workflow.list({
    query: `TaskQueue = '${prefix}-deliveries'`,
  })) {
    const handle = client.workflow.getHandle(workflowId, raw.execution?.runId ?? undefined);
    const described = await handle.describe();
    const history = await handle.fetchHistory();
    found.set(
      `${workflowId} ${raw.execution?.runId}`,
      textsIn([workflowId, raw, described.raw, history]).join('\n'),
    );
  }
  return found;
}

test('the scan finds a number that is written, in a payload, or inside a wamid', () => {
  const wamid = `wamid.${Buffer.from('\x1d\x05\x14\x0b12025550143\x15\x02').toString('base64')}`;
  const payload = Buffer.from(JSON.stringify({ eventId: wamid })).toString('base64');
  expect(tracesIn('to 12025550143')).toEqual(['12025550143']);
  expect(tracesIn(JSON.stringify({ id: wamid.slice('wamid.'.length) }))).toEqual(['12025550143']);
  expect(tracesIn(JSON.stringify({ data: payload }))).toContain('12025550143');
  expect(tracesIn('delivery/3/dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5061')).toEqual([]);
});

const FIXTURES = ['in_text', 'in_image_caption_url', 'in_order', 'pay_captured_upi', 'st_read'];

/**
 * A worker whose log is kept, and a tenant whose endpoint takes the second attempt of each webhook. What upstream sends to
 * the tenant has been delivered.
 */
async function deliverTo(fixtures: readonly string[]) {
  const { database, settings } = base;
  const lines: string[] = [];
  const logger = openLogger({ logLevel: 'info' }, 'worker', { write: (line) => void lines.push(line) });
  const receiver = await startReceiver((webhook, response) =>
    answer(webhook.headers['x-service-attempt'] === '1' ? 500 : 200)(webhook, response),
  );
  onTestFinished(() => receiver.close());
  const tenant = await base.newTenant();
  await addEndpoint(database, tenant.wabaId, `${receiver.url}/hook`);
  const worker = await startWorker(loadConfig(settings), logger);
  onTestFinished(() => worker.stop());
  await insertBodies(
    database,
    fixtures.map((name) => fixtureBodyTo(tenant, name)),
  );
  await eventually('they are published', async () => receiver.received.length >= fixtures.length);
  await isDelivered(tenant.wabaId);
  return { tenant, lines, logger };
}

/** Nothing of a tenant is on its way, in either direction. */
const isDelivered = (wabaId: string) =>
  eventually('everything is delivered', async () => {
    const sending = `select 1 from outbound_messages where waba_id = :wabaId and state in ('queued', 'sending')`;
    const open = await openDeliveries(base.database, { wabaId });
    return open === 0 && (await query(base.database, sending, { wabaId })).length === 0;
  });

test('neither Temporal nor the log holds a customer’s number or wamid after messages, media, payments and sends', async () => {
  const { database, settings, config } = base;
  const { tenant, lines, logger } = await deliverTo(FIXTURES);
  const objectStore = openObjectStore(config.objectStore);
  const app = buildApp({ config, database, objectStore, logger });
  onTestFinished(() => app.close());
  const send = async (to: string) => {
    const headers = { authorization: tenant.authorization, 'content-type': 'application/json' };
    const payload = JSON.stringify({
      phoneNumberId: tenant.number,
      to,
      type: 'text',
      text: { body: 'Hello' },
    });
    return await app.inject({ method: 'POST', url: '/api/external/messages', headers, payload });
  };
  const accepted = await send('+12025550177');
  expect(accepted.statusCode).toBe(200);
  await base.addFault({ match: 'send', kind: 'status', status: 400, code: 131009, times: 1 });
  await send('+12025550178');
  await isDelivered(tenant.wabaId);
  const { client } = environment;
  const prefix = settings.HELIOGRAPH_TEMPORAL_TASK_QUEUE_PREFIX ?? '';
  const types = async () => {
    const seen = new Set<string>();
    for await (const run of client.workflow.list({ query: `TaskQueue = '${prefix}-deliveries'` }))
      seen.add(run.type);
    return seen;
  };
  await eventually('every kind is visible', async () => {
    const seen = await types();
    return ['deliverEvent', 'storeInboundMedia', 'sendMessage', 'enrichOrder'].every((type) =>
      seen.has(type),
    );
  });
  const traces = [...(await everythingOf(client, prefix))].flatMap(([id, text]) =>
    tracesIn(text).map((trace) => [id, trace]),
  );
  expect(traces).toEqual([]);
  const seen = [...(await everythingOf(client, prefix)).values()].join('\n');
  // The scan saw inputs, results, search attributes and summaries.
  for (const text of ['"messageId"', 'Upstream accepted it.', 'HeliographEventId', 'message → '])
    expect(seen).toContain(text);
  expect(lines.join('')).toContain('a message was refused permanently');
  expect(lines.filter((line) => tracesIn(line).length > 0)).toEqual([]);
});

test('an operator finds the workflows of an eventId by its hash, which the command line prints', async () => {
  const { database, settings } = base;
  const { tenant } = await deliverTo(['in_text']);
  const [row] = await query<{ eventId: string; workflowId: string }>(
    database,
    `select e.event_id as "eventId", d.workflow_id as "workflowId" from deliveries d
       join events e on e.id = d.event_uuid where e.waba_id = :wabaId`,
    { wabaId: tenant.wabaId },
  );
  const { eventId = '', workflowId } = row ?? {};
  const { stdout } = await runAdmin(settings, ['events', 'search-attribute', eventId, '--json']);
  const printed = JSON.parse(stdout) as { value: string; query: string };
  expect(printed.value).toBe(await testEventIdHash(database)(eventId));
  const found: string[] = [];
  for await (const run of environment.client.workflow.list({ query: printed.query })) {
    found.push(run.workflowId);
  }
  expect(found).toContain(workflowId);
});

test('after the erasure of a customer neither Temporal nor the log of the worker holds the number in any form', async () => {
  const { database, settings } = base;
  const { tenant, lines } = await deliverTo(FIXTURES);
  const [erased = ''] = CUSTOMERS;
  const erase = ['erase', 'customer', '--waba', tenant.wabaId, '--phone', erased, '--yes'];
  expect(await runAdmin(settings, erase)).toMatchObject({ exitCode: 0 });
  const isErased = async () =>
    (
      await query(database, `select 1 from erasures where waba_id = :wabaId and state = 'done'`, {
        wabaId: tenant.wabaId,
      })
    ).length === 1;
  await eventually('the customer is erased', isErased);
  const after = await everythingOf(environment.client, settings.HELIOGRAPH_TEMPORAL_TASK_QUEUE_PREFIX ?? '');
  expect([...after.keys()].filter((id) => id.startsWith('eraseCustomer/'))).toHaveLength(1);
  const kept = [...after.values(), ...lines].join('\n');
  expect(formsOfNumber(erased).filter((form) => kept.includes(form))).toEqual([]);
  expect(tracesIn(kept)).toEqual([]);
});

test('the hash of an eventId stays the same after encryption keys have changed, and differs between installations', async () => {
  const { database } = await testDatabase();
  const [k1, k2] = [1, 2].map((n) => ({ id: `k${n}`, key: Buffer.alloc(32, n) }));
  if (k1 === undefined || k2 === undefined) throw new Error('no keys');
  const before = await openEventIdHash({ database, secretBox: makeSecretBox([k1]) })('wamid.1');
  await reencryptSecrets({ database, secretBox: makeSecretBox([k2, k1]), actor: SYSTEM });
  expect(await openEventIdHash({ database, secretBox: makeSecretBox([k2]) })('wamid.1')).toBe(before);
  expect(await testEventIdHash(base.database)('wamid.1')).not.toBe(before);
  // A workflow starts all the same when the secret cannot be opened.
  expect(await openEventIdHash({ database, secretBox: makeSecretBox([k1]) })('wamid.1')).toBeNull();
});
