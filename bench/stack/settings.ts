import { randomBytes } from 'node:crypto';
import type { Infrastructure } from '../../dev/embedded/infrastructure.ts';

export const APP_SECRET = 'bench-app-secret';

const FIRST_RETRY_SECONDS = 5;

/** The schedule varies each wait by a fifth. */
export const FIRST_RETRY_AT_MOST_MS = FIRST_RETRY_SECONDS * 1_200;

/** The settings of API and worker: those of production, but webhooks go to this machine over http. */
export function benchSettings(infrastructure: Infrastructure, apiPort: number): Record<string, string> {
  return {
    ...ownSettings(),
    HELIOGRAPH_MODE: 'development',
    HELIOGRAPH_API_DRAIN_NOTICE_MS: '0',
    HELIOGRAPH_DATABASE_URL: infrastructure.postgresUrl,
    HELIOGRAPH_TEMPORAL_ADDRESS: infrastructure.temporalAddress,
    HELIOGRAPH_TEMPORAL_NAMESPACE: 'default',
    HELIOGRAPH_OBJECT_STORE_URL: infrastructure.minioUrl,
    HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: infrastructure.minioCredentials.accessKey,
    HELIOGRAPH_OBJECT_STORE_SECRET_KEY: infrastructure.minioCredentials.secretKey,
    HELIOGRAPH_API_HOST: '127.0.0.1',
    HELIOGRAPH_API_PORT: String(apiPort),
    HELIOGRAPH_PUBLIC_URL: 'https://gateway.example',
    // Nobody listens there: no scenario needs the Graph API.
    HELIOGRAPH_UPSTREAM_GRAPH_URL: 'http://127.0.0.1:9',
    HELIOGRAPH_UPSTREAM_APP_SECRETS: APP_SECRET,
    HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: 'bench-verify-token',
    HELIOGRAPH_ENCRYPTION_KEYS: `bench:${randomBytes(32).toString('base64')}`,
    HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS: `${FIRST_RETRY_SECONDS},30,120,600,1800,7200,21600,43200,86400`,
    HELIOGRAPH_WEBHOOK_ALLOW_HTTP: 'true',
    HELIOGRAPH_WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  };
}

/** What the user set counts where the benchmark needs nothing else: pool size, log level, time-outs. */
function ownSettings(): Record<string, string> {
  const set = Object.entries(process.env).filter(([name]) => name.startsWith('HELIOGRAPH_'));
  return Object.fromEntries(set.map(([name, value]) => [name, value ?? '']));
}
