import { randomBytes } from 'node:crypto';
import type { Client } from '@temporalio/client';
import type { FaultRequest } from '../../../../dev/sandbox/fault-register.ts';
import type { LoggedRequest } from '../../../../dev/sandbox/upstream-records.ts';
import { startUpstreamServer } from '../../../../dev/sandbox/upstream-server.ts';
import { makeEnrichOrderActivities } from '../../../../src/activities/enrich-order.ts';
import { makeStoreInboundMediaActivities } from '../../../../src/activities/store-inbound-media.ts';
import { ACCESS_TOKEN as SEALED_TOKEN } from '../../../../src/features/accounts/access-tokens.ts';
import { makeMediaUrls } from '../../../../src/features/messages/media/media-urls.ts';
import { type Config, loadConfig } from '../../../../src/platform/config/config.ts';
import { openGraphClient } from '../../../../src/platform/graph/graph-client.ts';
import { type ObjectStore, openObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { silentLogger } from '../../../support/silent-logger.ts';
import { startTaskWorkers } from '../../../support/task-workers.ts';
import {
  type FreshTenant,
  freshTenant,
  seedFixtureAccounts,
  testSecretBox,
} from '../../../support/test-accounts.ts';
import { createTestDatabase, drawIdsApart } from '../../../support/test-database.ts';
import { testSettings } from '../../../support/test-settings.ts';

export const WABA = '900000000000101';
const NUMBER = '800000000000111';
const ACCESS_TOKEN = 'EAAG-test-token';
const MAX_BYTES = 16 * 1024 * 1024;

/** A WABA with an access token, and its number. */
type MediaTenant = {
  wabaId: string;
  number: string;
  setAccessToken(token: string | null): Promise<void>;
};

export type MediaStack = MediaTenant & {
  config: Config;
  database: Database;
  client: Client;
  taskQueue: string;
  objectStore: ObjectStore;
  /** Lets the store be away (null) or back. */
  useStore(store: ObjectStore | null): void;
  addFault(fault: FaultRequest): Promise<void>;
  clearUpstream(): Promise<void>;
  /** What upstream was asked since `clearUpstream`, as `GET /v26.0/1 200`. */
  upstreamRequests(): Promise<string[]>;
  /** Gives upstream a file; returns its id and digest. */
  upload(bytes: Buffer, mimeType: string): Promise<{ id: string; sha256: string }>;
  /** A tenant that no other test knows, which upstream knows too. */
  newTenant(): Promise<MediaTenant & FreshTenant>;
  stop(): Promise<void>;
};

/** Intake's tables, the workflow starter and a Temporal worker on real servers, with the sandbox as upstream. */
export async function startMediaStack(): Promise<MediaStack> {
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
  });
  const config = loadConfig(
    testSettings(store.url, {
      HELIOGRAPH_UPSTREAM_GRAPH_URL: sandbox.url,
      HELIOGRAPH_OBJECT_STORE_BUCKET: `test-${randomBytes(6).toString('hex')}`,
    }),
  );
  const real = openObjectStore(config.objectStore);
  const away = openObjectStore({ ...config.objectStore, url: 'http://127.0.0.1:1' });
  let current = real;
  const objectStore: ObjectStore = {
    ...real,
    put: (...parameters) => current.put(...parameters),
    remove: (...parameters) => current.remove(...parameters),
  };
  const graph = openGraphClient(config);
  const worker = await startMediaWorker(config, store.database, {
    database: store.database,
    graph,
    objectStore,
    secretBox: testSecretBox,
    logger: silentLogger,
    maxBytes: MAX_BYTES,
    publicUrl: config.api.publicUrl,
    mediaUrls: makeMediaUrls({
      database: store.database,
      secretBox: testSecretBox,
      publicUrl: config.api.publicUrl,
      ttlSeconds: config.media.urlTtlSeconds,
    }),
  });
  const control = async (
    method: string,
    path: string,
    body?: string | Uint8Array<ArrayBuffer>,
    type = 'application/json',
  ) => {
    const headers = { 'content-type': type };
    const answer = await fetch(`${sandbox.url}${path}`, {
      method,
      ...(body === undefined ? {} : { body, headers }),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as never;
  };
  const withToken = async <Tenant extends { wabaId: string; number: string }>(tenant: Tenant) => {
    const setAccessToken = (token: string | null) => setToken(store.database, tenant.wabaId, token);
    await setAccessToken(ACCESS_TOKEN);
    return { ...tenant, setAccessToken };
  };
  return {
    ...(await withToken({ wabaId: WABA, number: NUMBER })),
    config,
    database: store.database,
    client: worker.client,
    taskQueue: worker.taskQueue,
    objectStore: real,
    useStore: (next) => {
      current = next ?? away;
    },
    addFault: (fault) => control('POST', '/sandbox/faults', JSON.stringify(fault)),
    clearUpstream: async () => {
      await control('DELETE', '/sandbox/faults');
      await control('DELETE', '/sandbox/requests');
    },
    upstreamRequests: async () => {
      const { data }: { data: LoggedRequest[] } = await control('GET', '/sandbox/requests');
      return data.map(({ method, path, status }) => `${method} ${path} ${status}`);
    },
    upload: (bytes, mimeType) => control('POST', '/sandbox/media', new Uint8Array(bytes), mimeType),
    newTenant: async () => {
      const tenant = await freshTenant(store.database);
      const names = { displayPhoneNumber: '+1 202-555-0100', verifiedName: 'Fixture Store' };
      const phone = { wabaId: tenant.wabaId, phoneNumberId: tenant.number, ...names };
      await control('POST', '/sandbox/phone-numbers', JSON.stringify(phone));
      return await withToken(tenant);
    },
    stop: async () => {
      await worker.stop();
      await graph.close();
      real.close();
      away.close();
      await sandbox.close();
      await store.close();
    },
  };
}

type Tools = Parameters<typeof makeStoreInboundMediaActivities>[0] &
  Parameters<typeof makeEnrichOrderActivities>[0];

async function startMediaWorker(config: Config, database: Database, tools: Tools) {
  return await startTaskWorkers(config, database, {
    media: makeStoreInboundMediaActivities(tools),
    orders: makeEnrichOrderActivities(tools),
  });
}

async function setToken(database: Database, wabaId: string, token: string | null): Promise<void> {
  const sealed = token === null ? null : testSecretBox.seal(token, SEALED_TOKEN.place(wabaId));
  await execute(database, 'update wabas set access_token_sealed = :sealed where waba_id = :wabaId', {
    sealed,
    wabaId,
  });
}

/** A webhook body with one message of the fixtures' customer; `content` is e.g. `{type: 'image', image: {…}}`. */
export function messageBody(
  content: Record<string, unknown>,
  { wabaId = WABA, number = NUMBER } = {},
): { body: Buffer; upstreamId: string } {
  const upstreamId = `wamid.TEST${randomBytes(12).toString('hex')}`;
  const message = { from: '12025550143', id: upstreamId, timestamp: '1790000077', ...content };
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '12025550100', phone_number_id: number },
    contacts: [{ profile: { name: 'Asha Tester' }, wa_id: '12025550143' }],
    messages: [message],
  };
  const entry = [{ id: wabaId, changes: [{ field: 'messages', value }] }];
  return { body: Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry })), upstreamId };
}
