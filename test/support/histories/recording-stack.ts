import { randomBytes } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { startTestInfrastructure } from '../../../dev/embedded/test-infrastructure.ts';
import { startUpstreamServer } from '../../../dev/sandbox/upstream-server.ts';
import { saveWaba } from '../../../src/features/accounts/accounts.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { type DatabasePool, openDatabase } from '../../../src/platform/postgres/database.ts';
import { migrate } from '../../../src/platform/postgres/migrate.ts';
import { type Bindings, query } from '../../../src/platform/postgres/sql.ts';
import { connectTemporal } from '../../../src/platform/temporal/worker-connection.ts';
import { taskQueues } from '../../../src/platform/temporal/workflow-options.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { startMailServer } from '../mail-server.ts';
import { silentLogger } from '../silent-logger.ts';
import { seedFixtureAccounts, testSecretBox } from '../test-accounts.ts';
import { startReceiver, type WebhookReceiver } from '../webhook-receiver.ts';

export const WABA = '900000000000101';
export const ACCESS_TOKEN = 'EAAG-test-token';

export type RecordingStack = {
  database: DatabasePool;
  client: Client;
  receiver: WebhookReceiver;
  /** Of all workflows. */
  taskQueue: string;
  /** The stand-in for the upstream platform. */
  upstreamUrl: string;
  stop(): Promise<void>;
};

/** PostgreSQL, Temporal, MinIO, the stand-in for upstream, a receiver and a whole worker in this process. */
export async function startRecordingStack(): Promise<RecordingStack> {
  const servers = await startTestInfrastructure(() => {});
  const database = openDatabase({
    url: servers.postgresUrl,
    poolMax: 10,
    applicationName: 'record-histories',
  });
  await migrate(database);
  await seedFixtureAccounts(database);
  const secrets = { appSecret: 'test-app-secret', verifyToken: 'test-verify-token' };
  const upstream = await startUpstreamServer({
    ...secrets,
    host: '127.0.0.1',
    port: 0,
    accessToken: ACCESS_TOKEN,
    ingressUrl: 'http://127.0.0.1:9',
  });
  await saveAccessToken(database);
  const mailServer = await startMailServer({ isPlain: true });
  const config = loadConfig({
    HELIOGRAPH_MODE: 'development',
    HELIOGRAPH_API_DRAIN_NOTICE_MS: '0',
    HELIOGRAPH_DATABASE_URL: servers.postgresUrl,
    HELIOGRAPH_TEMPORAL_ADDRESS: servers.temporalAddress,
    HELIOGRAPH_OBJECT_STORE_URL: servers.minioUrl,
    HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: servers.minioCredentials.accessKey,
    HELIOGRAPH_OBJECT_STORE_SECRET_KEY: servers.minioCredentials.secretKey,
    HELIOGRAPH_OBJECT_STORE_BUCKET: `histories-${randomBytes(4).toString('hex')}`,
    HELIOGRAPH_PUBLIC_URL: 'https://gateway.example',
    HELIOGRAPH_UPSTREAM_GRAPH_URL: upstream.url,
    HELIOGRAPH_UPSTREAM_APP_SECRETS: secrets.appSecret,
    HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: secrets.verifyToken,
    HELIOGRAPH_UPSTREAM_MEDIA_HOSTS: '127.0.0.1',
    HELIOGRAPH_ENCRYPTION_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
    HELIOGRAPH_WEBHOOK_ALLOW_HTTP: 'true',
    HELIOGRAPH_WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS: '1,1',
    HELIOGRAPH_WEBHOOK_TIMEOUT_MS: '2000',
    HELIOGRAPH_DELIVERY_WORKFLOWS: 'always',
    HELIOGRAPH_SMTP_URL: mailServer.url,
    HELIOGRAPH_SMTP_TLS: 'off',
    HELIOGRAPH_MAIL_FROM: 'Heliograph <alerts@gateway.example>',
  });
  const worker = await startWorker(config, silentLogger);
  const { connection, client } = await connectTemporal(config.temporal);
  const receiver = await startReceiver();
  const stop = async () => {
    await worker.stop();
    await connection.close();
    await receiver.close();
    await mailServer.close();
    await upstream.close();
    await database.destroy();
    await servers.stop();
  };
  const { deliveries: taskQueue } = taskQueues(config.temporal.taskQueuePrefix);
  return { database, client, receiver, taskQueue, upstreamUrl: upstream.url, stop };
}

async function saveAccessToken(database: DatabasePool): Promise<void> {
  const [waba] = await query<{ tenantId: string }>(
    database,
    'select tenant_id as "tenantId" from wabas where waba_id = :waba',
    { waba: WABA },
  );
  const accessTokenSealed = testSecretBox.seal(ACCESS_TOKEN, `wabas|access_token|${WABA}`);
  await saveWaba(database, waba?.tenantId ?? '', { wabaId: WABA, accessTokenSealed });
}

/** The one row that a statement selects; fails when there is none. */
export async function oneRow<Row>(database: DatabasePool, text: string, bindings: Bindings): Promise<Row> {
  const [row] = await query<Row>(database, text, bindings);
  if (row === undefined) throw new Error(`no row: ${text}`);
  return row;
}
