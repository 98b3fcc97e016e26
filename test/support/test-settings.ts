import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';

/** The settings of a worker or API on the test servers: own database, own task queues. */
export function testSettings(
  databaseUrl: string,
  overrides: Record<string, string> = {},
): Record<string, string> {
  const servers = inject('infrastructure');
  return {
    HELIOGRAPH_MODE: 'development',
    HELIOGRAPH_API_DRAIN_NOTICE_MS: '0',
    HELIOGRAPH_DATABASE_URL: databaseUrl,
    HELIOGRAPH_TEMPORAL_ADDRESS: servers.temporalAddress,
    HELIOGRAPH_TEMPORAL_TASK_QUEUE_PREFIX: `test-${randomBytes(4).toString('hex')}`,
    HELIOGRAPH_OBJECT_STORE_URL: servers.minioUrl,
    HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: servers.minioAccessKey,
    HELIOGRAPH_OBJECT_STORE_SECRET_KEY: servers.minioSecretKey,
    HELIOGRAPH_PUBLIC_URL: 'https://gateway.example',
    HELIOGRAPH_UPSTREAM_GRAPH_URL: 'http://127.0.0.1:9',
    HELIOGRAPH_UPSTREAM_APP_SECRETS: 'test-app-secret',
    HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: 'test-verify-token',
    HELIOGRAPH_UPSTREAM_MEDIA_HOSTS: '127.0.0.1',
    HELIOGRAPH_ENCRYPTION_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
    HELIOGRAPH_WEBHOOK_ALLOW_HTTP: 'true',
    HELIOGRAPH_WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS: '1,1,1,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2',
    ...overrides,
  };
}
