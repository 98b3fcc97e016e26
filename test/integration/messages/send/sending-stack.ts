import { randomBytes } from 'node:crypto';
import type { Client } from '@temporalio/client';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import type { FaultRequest } from '../../../../dev/sandbox/fault-register.ts';
import type { LoggedRequest, SentMessage } from '../../../../dev/sandbox/upstream-records.ts';
import { startUpstreamServer } from '../../../../dev/sandbox/upstream-server.ts';
import { makeBroadcastActivities } from '../../../../src/activities/send-broadcast.ts';
import { makeSendMessageActivities, type Send } from '../../../../src/activities/send-message.ts';
import { makeSendScheduledActivities } from '../../../../src/activities/send-scheduled.ts';
import { buildApp } from '../../../../src/api/app.ts';
import { ACCESS_TOKEN as SEALED_TOKEN } from '../../../../src/features/accounts/access-tokens.ts';
import { makeSend, makeSendMemory } from '../../../../src/features/messages/send/make-send.ts';
import { type Config, loadConfig } from '../../../../src/platform/config/config.ts';
import { openSendClient } from '../../../../src/platform/graph/graph-client.ts';
import { openObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { silentLogger } from '../../../support/silent-logger.ts';
import { startTaskWorkers } from '../../../support/task-workers.ts';
import { freshTenant, seedFixtureAccounts, testSecretBox } from '../../../support/test-accounts.ts';
import { createTestDatabase, drawIdsApart } from '../../../support/test-database.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { addKey, SECOND_NUMBER } from '../../api/api-harness.ts';

export const WABA = '900000000000101';
export const NUMBER = '800000000000111';
const ACCESS_TOKEN = 'EAAG-test-token';

/** The parts that any test of sending needs: database, accounts, the stand-in platform. */
export async function startSendingBase(overrides: Record<string, string> = {}) {
  const store = await createTestDatabase(20);
  await seedFixtureAccounts(store.database);
  await drawIdsApart(store.database);
  const sandbox = await startUpstreamServer({
    host: '127.0.0.1',
    port: 0,
    appSecret: 'test-app-secret',
    verifyToken: 'test-verify-token',
    ingressUrl: 'http://127.0.0.1:9',
    accessToken: ACCESS_TOKEN,
    statusDelayMs: 3_600_000,
  });
  const settings = testSettings(store.url, {
    HELIOGRAPH_UPSTREAM_GRAPH_URL: sandbox.url,
    HELIOGRAPH_OBJECT_STORE_BUCKET: `test-${randomBytes(6).toString('hex')}`,
    ...overrides,
  });
  const control = async (method: string, path: string, body?: unknown) => {
    const answer = await fetch(`${sandbox.url}${path}`, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as never;
  };
  return {
    database: store.database as Database,
    databaseUrl: store.url,
    settings,
    config: loadConfig(settings) as Config,
    ...(await tenantWithKey(store.database, { wabaId: WABA, number: NUMBER, secondNumber: SECOND_NUMBER })),
    sandboxUrl: sandbox.url,
    addFault: (fault: FaultRequest) => control('POST', '/sandbox/faults', fault),
    clearFaults: async (): Promise<void> => await control('DELETE', '/sandbox/faults'),
    clearUpstream: async () => {
      await control('DELETE', '/sandbox/faults');
      await control('DELETE', '/sandbox/requests');
      await control('DELETE', '/sandbox/sent');
    },
    /** Of a WABA, as upstream keeps it, approved. */
    makeTemplate: async (wabaId: string, template: object): Promise<void> => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${ACCESS_TOKEN}` };
      const address = `${sandbox.url}/v26.0/${wabaId}/message_templates`;
      const made = await fetch(address, { method: 'POST', headers, body: JSON.stringify(template) });
      if (!made.ok) throw new Error(await made.text());
    },
    /** Requests to send since `clearUpstream`, whatever became of them. */
    sendRequests: async () => {
      const { data }: { data: LoggedRequest[] } = await control('GET', '/sandbox/requests');
      return data.filter(({ method, path }) => method === 'POST' && path.endsWith('/messages'));
    },
    /** What upstream took since `clearUpstream`. */
    sent: async () => {
      const { data }: { data: SentMessage[] } = await control('GET', '/sandbox/sent');
      return data;
    },
    /** A tenant that no other test knows, which upstream knows too. */
    newTenant: async () => {
      const tenant = await freshTenant(store.database);
      const names = { displayPhoneNumber: '+1 202-555-0100', verifiedName: 'Fixture Store' };
      for (const phoneNumberId of [tenant.number, tenant.secondNumber])
        await control('POST', '/sandbox/phone-numbers', { wabaId: tenant.wabaId, phoneNumberId, ...names });
      return await tenantWithKey(store.database, tenant);
    },
    close: async () => {
      await sandbox.close();
      await store.close();
    },
  };
}

type Numbers = { wabaId: string; number: string; secondNumber: string };

/** Gives a tenant an access token and a key of the API. */
async function tenantWithKey(database: Database, numbers: Numbers) {
  const setAccessToken = (token: string | null) => setToken(database, numbers.wabaId, token);
  await setAccessToken(ACCESS_TOKEN);
  const { authorization } = await addKey(database, numbers.wabaId);
  return { ...numbers, authorization, setAccessToken };
}

/** Calls of the API as a tenant. */
function callsOf(app: FastifyInstance, { number, authorization }: { number: string; authorization: string }) {
  const send = (body: object, headers: Record<string, string> = {}) =>
    post(app, authorization, { phoneNumberId: number, ...body }, headers);
  const get = async (id: string) => {
    const response = await app.inject({ url: `/api/external/messages/${id}`, headers: { authorization } });
    return { status: response.statusCode, body: response.json() };
  };
  return {
    /** Sends from the tenant's first number unless the body names another. */
    send,
    get,
    /** As `send`, with the outcome: on a slow machine the response comes before it, and then the message is returned. */
    sendToEnd: async (body: object, headers: Record<string, string> = {}) => {
      const first = await send(body, headers);
      if (first.status !== 202) return first;
      let last = await get(first.body.serviceMessageId);
      await eventually('an outcome', async () => {
        last = await get(first.body.serviceMessageId);
        return !['queued', 'sending'].includes(last.body.state);
      });
      return { ...first, status: last.body.state === 'accepted' ? 200 : 424, body: last.body };
    },
  };
}

/** API, workflow starter and Temporal worker in this process. */
export async function startSendingStack(overrides: Record<string, string> = {}) {
  const base = await startSendingBase(overrides);
  const { config, database } = base;
  const objectStore = openObjectStore(config.objectStore);
  const app = buildApp({ config, database, objectStore, logger: silentLogger });
  await app.ready();
  const worker = await startSendWorker(config, database);
  return {
    ...base,
    app: app as FastifyInstance,
    client: worker.client,
    makeSend: worker.makeSend,
    ...callsOf(app, base),
    /** As that of the base, with calls as that tenant. */
    newTenant: async () => {
      const tenant = await base.newTenant();
      return { ...tenant, ...callsOf(app, tenant) };
    },
    stop: async () => {
      await app.close();
      await worker.stop();
      objectStore.close();
      await base.close();
    },
  };
}

export type SendingStack = Awaited<ReturnType<typeof startSendingStack>>;

/** One stack for the tests of a file. Each begins as a tenant that no other knows, at an upstream without faults. */
export function sendingStackOfFile(overrides: Record<string, string> = {}): SendingStack {
  const stack = {} as SendingStack;
  beforeAll(async () => {
    Object.assign(stack, await startSendingStack(overrides));
  });
  beforeEach(async () => {
    await stack.clearUpstream();
    Object.assign(stack, await stack.newTenant());
  });
  afterAll(() => stack.stop());
  return stack;
}

async function post(
  app: FastifyInstance,
  authorization: string,
  body: unknown,
  headers: Record<string, string>,
) {
  const response = await app.inject({
    method: 'POST',
    url: '/api/external/messages',
    headers: { authorization, 'content-type': 'application/json', ...headers },
    payload: JSON.stringify(body),
  });
  return {
    status: response.statusCode,
    headers: response.headers,
    text: response.body,
    body: response.json(),
  };
}

async function startSendWorker(
  config: Config,
  database: Database,
): Promise<{ client: Client; makeSend: Send; stop(): Promise<void> }> {
  const sender = openSendClient(config);
  const objectStore = openObjectStore(config.objectStore);
  const { sending } = config;
  const tools = { database, secretBox: testSecretBox, sender, objectStore, sending, logger: silentLogger };
  const memory = makeSendMemory();
  const send: Send = (input, run) => makeSend(tools, input, { ...memory, ...run });
  const workers = await startTaskWorkers(config, database, {
    sends: makeSendMessageActivities(tools, send),
    operations: {
      ...makeBroadcastActivities({ database, sending, send }),
      ...makeSendScheduledActivities({ database, sending, send }),
    },
  });
  const stop = async () => {
    await workers.stop();
    await sender.close();
    objectStore.close();
  };
  return { client: workers.client, makeSend: send, stop };
}

async function setToken(database: Database, wabaId: string, token: string | null): Promise<void> {
  const sealed = token === null ? null : testSecretBox.seal(token, SEALED_TOKEN.place(wabaId));
  await execute(database, 'update wabas set access_token_sealed = :sealed where waba_id = :wabaId', {
    sealed,
    wabaId,
  });
}

let phones = 0;

/** A text to a customer of its own unless told whom. */
export function textTo(to = `+1202555${String(1_000 + (phones++ % 9_000))}`, body = 'Hello') {
  return { to, type: 'text', text: { body } };
}
