import { createHmac } from 'node:crypto';
import type { FastifyInstance, RouteOptions } from 'fastify';
import { afterAll, beforeAll, inject, onTestFinished } from 'vitest';
import { sandboxPages } from '../../../dev/console/console-pages.ts';
import { type ApiDependencies, buildApp } from '../../../src/api/app.ts';
import { apiKeyHints, hashApiKey, newApiKey } from '../../../src/features/keys/api-key.ts';
import { insertApiKey } from '../../../src/features/keys/api-key-store.ts';
import { type Config, loadConfig } from '../../../src/platform/config/config.ts';
import { openObjectStore } from '../../../src/platform/object-store/object-store.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { TEMPORAL_AWAY } from '../../support/temporal-away.ts';
import { type FreshTenant, freshTenant, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { createTestDatabase } from '../../support/test-database.ts';

const APP_SECRET = 'test-app-secret';
export const PUBLIC_URL = 'https://heliograph.example';
export const WABA = '900000000000101';
export const OTHER_WABA = '900000000000202';
export const NUMBER = '800000000000111';
export const SECOND_NUMBER = '800000000000112';
export const OTHER_NUMBER = '800000000000221';

/** What the API of a test seals secrets with. */
export const API_ENCRYPTION_KEY = `k1:${Buffer.alloc(32, 1).toString('base64')}`;

export function testConfig(overrides: Record<string, string> = {}): Config {
  const { postgresUrl, minioUrl, minioAccessKey, minioSecretKey } = inject('infrastructure');
  return loadConfig({
    HELIOGRAPH_MODE: 'development',
    HELIOGRAPH_DATABASE_URL: postgresUrl,
    HELIOGRAPH_OBJECT_STORE_URL: minioUrl,
    HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: minioAccessKey,
    HELIOGRAPH_OBJECT_STORE_SECRET_KEY: minioSecretKey,
    HELIOGRAPH_PUBLIC_URL: PUBLIC_URL,
    HELIOGRAPH_UPSTREAM_APP_SECRETS: `old-app-secret,${APP_SECRET}`,
    HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: 'verify-me',
    // Tests of access ask more often than any tenant.
    HELIOGRAPH_RATE_LIMIT_READS_PER_SECOND: '0',
    HELIOGRAPH_RATE_LIMIT_WRITES_PER_SECOND: '0',
    HELIOGRAPH_RATE_LIMIT_WRONG_KEYS_PER_MINUTE: '0',
    HELIOGRAPH_ENCRYPTION_KEYS: API_ENCRYPTION_KEY,
    ...overrides,
  });
}

export type TestApi = {
  app: FastifyInstance;
  database: Database;
  databaseUrl: string;
  routes: RouteOptions[];
};

/** The API on a database of its own with the fixtures' accounts and without Temporal, closed when the test or file ends. */
export async function startTestApi(
  overrides: (databaseUrl: string) => Promise<Partial<ApiDependencies>> = async () => ({}),
  atEnd: (close: () => Promise<void>) => void = onTestFinished,
): Promise<TestApi> {
  const { database, url, close } = await createTestDatabase();
  await seedFixtureAccounts(database);
  const config = testConfig();
  const objectStore = openObjectStore(config.objectStore);
  const app = buildApp({
    config,
    database,
    objectStore,
    logger: silentLogger,
    temporal: TEMPORAL_AWAY,
    consolePages: sandboxPages,
    // Whatever `npm run docs` has built here.
    docsFolder: '/nonexistent',
    ...(await overrides(url)),
  });
  const routes: RouteOptions[] = [];
  app.addHook('onRoute', (route) => {
    // Copied: a path with and without a slash at the end is one object that is changed in between.
    const kept = { ...route };
    routes.push(kept);
    // Hooks of inner scopes come later.
    queueMicrotask(() => Object.assign(kept, { bodyLimit: route.bodyLimit }));
  });
  await app.ready();
  atEnd(async () => {
    await app.close();
    objectStore.close();
    await close();
  });
  return { app, database, databaseUrl: url, routes };
}

/** As `startTestApi`, one for the tests of a file: filled before the first of them. Each test makes its own tenant. */
export function apiOfFile(overrides?: (databaseUrl: string) => Promise<Partial<ApiDependencies>>): TestApi {
  const api = {} as TestApi;
  let close: () => Promise<void> = async () => {};
  beforeAll(async () => {
    const keep = (closeApi: () => Promise<void>) => {
      close = closeApi;
    };
    Object.assign(api, await startTestApi(overrides, keep));
  });
  afterAll(() => close());
  return api;
}

/** Adds a key to a WABA and returns it. */
export async function addKey(
  database: Database,
  wabaId = WABA,
  expiresAt: Date | null = null,
): Promise<{ id: string; key: string; authorization: string }> {
  const key = newApiKey();
  const { prefix, last4 } = apiKeyHints(key);
  const fields = { name: 'test', keyHash: hashApiKey(key), prefix, lastFour: last4, expiresAt };
  return { id: await insertApiKey(database, wabaId, fields), key, authorization: `Bearer ${key}` };
}

export type KeyHolder = FreshTenant & { keyId: string; key: string; authorization: string };

/** A tenant that no other test knows, with a key of its WABA. */
export async function freshKeyHolder(database: Database): Promise<KeyHolder> {
  const tenant = await freshTenant(database);
  const { id: keyId, key, authorization } = await addKey(database, tenant.wabaId);
  return { ...tenant, keyId, key, authorization };
}

export function signed(body: Buffer | string, secret = APP_SECRET): Record<string, string> {
  return { 'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}` };
}

/** A 404 names the id that the client wrote, and is as long as that. */
const GIVEN_ID = /There is no ([\w ]+?) \\".*?\\"\. Its id is/s;

/** The answer without what differs from request to request, and without the id that the client wrote. */
export function comparable(response: { statusCode: number; body: string; headers: Record<string, unknown> }) {
  const { 'x-request-id': requestId, date, 'content-length': length, ...headers } = response.headers;
  const body = response.body
    .replaceAll(String(requestId), 'ID')
    .replace(GIVEN_ID, 'There is no $1. Its id is');
  return { status: response.statusCode, body, headers };
}

/** Adds a customer with a conversation and returns the conversation's id. */
export async function addConversation(
  database: Database,
  { wabaId = WABA, phoneNumberId = NUMBER, waId = null as string | null, at = new Date() } = {},
): Promise<string> {
  const [row] = await query<{ id: string }>(
    database,
    `with customer as (
       insert into contacts (waba_id, wa_id, user_id, profile_name)
       values (:wabaId, :waId, gen_random_uuid(), 'Asha') returning id)
     insert into conversations (waba_id, phone_number_id, contact_id, last_message_at)
     select :wabaId, :phoneNumberId, id, :at from customer returning id`,
    { wabaId, phoneNumberId, waId, at },
  );
  return row?.id ?? '';
}

/** Adds a message and returns its Message_Id. */
export async function addMessage(
  database: Database,
  conversationId: string,
  { wabaId = WABA, phoneNumberId = NUMBER, direction = 'inbound', type = 'text', content = '{}' } = {},
): Promise<string> {
  const [row] = await query<{ id: string }>(
    database,
    `insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content, sent_at)
     values (:wabaId, :phoneNumberId, :conversationId, :direction, 'wamid.' || gen_random_uuid(), :type, :content,
             '2026-11-20T10:00:00Z') returning id`,
    { wabaId, phoneNumberId, conversationId, direction, type, content },
  );
  return row?.id ?? '';
}
