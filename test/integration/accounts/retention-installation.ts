import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { onTestFinished } from 'vitest';
import { buildApp } from '../../../src/api/app.ts';
import { policyDefaults, setTenantPolicy } from '../../../src/features/accounts/tenant-policies.ts';
import { markMediaStored, takePendingMedia } from '../../../src/features/messages/media/media.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { openObjectStore } from '../../../src/platform/object-store/object-store.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { takeIn } from '../../support/take-in.ts';
import { seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { addKey, WABA } from '../api/api-harness.ts';
import { messageBody } from '../messages/media/media-stack.ts';

export async function installation(
  policy: Parameters<typeof setTenantPolicy>[2],
  overrides: Record<string, string> = {},
) {
  const { database, url } = await testDatabase();
  const tenantId = (await seedFixtureAccounts(database)).get(WABA) ?? '';
  const bucket = { HELIOGRAPH_OBJECT_STORE_BUCKET: `test-${randomBytes(6).toString('hex')}` };
  const config = loadConfig(testSettings(url, { ...bucket, ...overrides }));
  const tools = { database, actor: SYSTEM, defaults: policyDefaults(config) };
  await setTenantPolicy(tools, tenantId, policy);
  const objectStore = openObjectStore(config.objectStore);
  const app = buildApp({ config, database, objectStore, logger: silentLogger });
  const { authorization } = await addKey(database);
  onTestFinished(async () => {
    await app.close();
    objectStore.close();
  });
  const get = async (path: string) => await app.inject({ url: path, headers: { authorization } });
  return { database, tenantId, config, objectStore, get, tools };
}

/** A message of a WABA with a stored file. */
export async function storedFile({ database, objectStore }: Awaited<ReturnType<typeof installation>>) {
  const { body, upstreamId } = messageBody({
    type: 'document',
    document: { id: '1', mime_type: 'text/plain' },
  });
  await takeIn(database, body);
  const [row] = await query<{ id: string; conversation: string }>(
    database,
    'select id, conversation_id as conversation from messages where upstream_id = :upstreamId',
    { upstreamId },
  );
  const { id: messageId = '', conversation = '' } = row ?? {};
  const objectKey = randomBytes(24).toString('base64url');
  await takePendingMedia(database, { wabaId: WABA, messageId, objectKey });
  await objectStore.put(objectKey, Readable.from([Buffer.from('hello')]), { contentType: 'text/plain' });
  const stored = {
    objectKey,
    servedType: 'text/plain',
    mimeType: 'text/plain',
    sizeBytes: 5,
    sha256: 'a'.repeat(64),
  };
  await database.transaction((trx) => markMediaStored(trx, WABA, messageId, stored));
  return { messageId, objectKey, upstreamId, conversation, body };
}

export const count = async (database: Database, text: string) => (await query(database, text)).length;

export const age = (days: number) => `now() - interval '${days} days' - interval '1 minute'`;
