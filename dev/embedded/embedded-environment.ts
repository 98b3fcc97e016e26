import { join } from 'node:path';
import { DEVELOPMENT_APP_SECRET, DEVELOPMENT_VERIFY_TOKEN } from '../../src/platform/config/weak-secrets.ts';
import { APP } from '../sandbox/graph/app-subscriptions.ts';
import type { LocalCertificate } from './certificate.ts';
import type { Infrastructure } from './infrastructure.ts';
import { keptSecret } from './kept-files.ts';
import { type EmbeddedPorts, portVariables } from './ports.ts';

export interface EmbeddedUrls {
  readonly apiUrl: string;
  readonly httpsUrl: string;
  readonly sandboxUrl: string;
  readonly receiverUrl: string;
}

/** Where the parts of the embedded stack answer. */
export function embeddedUrls(ports: EmbeddedPorts): EmbeddedUrls {
  return {
    apiUrl: `http://127.0.0.1:${ports.api}`,
    httpsUrl: `https://127.0.0.1:${ports.https}`,
    sandboxUrl: `http://127.0.0.1:${ports.sandbox}`,
    receiverUrl: `http://127.0.0.1:${ports.receiver}`,
  };
}

/**
 * The settings that tie the processes of the embedded stack together. They go over the user's own, which
 * count for everything else (log level, time-outs, retry schedule).
 */
export function embeddedEnvironment(
  dataDir: string,
  ports: EmbeddedPorts,
  infrastructure: Infrastructure,
  { certificate, publicUrl }: { certificate: LocalCertificate; publicUrl: string },
): Record<string, string> {
  const urls = embeddedUrls(ports);
  return {
    ...portVariables(ports),
    HELIOGRAPH_MODE: 'development',
    HELIOGRAPH_DATABASE_URL: infrastructure.postgresUrl,
    HELIOGRAPH_TEMPORAL_ADDRESS: infrastructure.temporalAddress,
    HELIOGRAPH_TEMPORAL_NAMESPACE: 'default',
    HELIOGRAPH_TEMPORAL_UI_URL: infrastructure.temporalUiUrl,
    HELIOGRAPH_OBJECT_STORE_URL: infrastructure.minioUrl,
    HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: infrastructure.minioCredentials.accessKey,
    HELIOGRAPH_OBJECT_STORE_SECRET_KEY: infrastructure.minioCredentials.secretKey,
    HELIOGRAPH_API_HOST: '127.0.0.1',
    HELIOGRAPH_API_PORT: String(ports.api),
    HELIOGRAPH_HTTPS_PORT: String(ports.https),
    HELIOGRAPH_TLS_CERT_FILE: certificate.certPath,
    HELIOGRAPH_TLS_KEY_FILE: certificate.keyPath,
    // No load balancer has to notice.
    HELIOGRAPH_API_DRAIN_NOTICE_MS: '0',
    HELIOGRAPH_API_METRICS_PORT: String(ports.apiMetrics),
    HELIOGRAPH_WORKER_HEALTH_PORT: String(ports.workerHealth),
    HELIOGRAPH_PUBLIC_URL: publicUrl,
    HELIOGRAPH_UPSTREAM_GRAPH_URL: urls.sandboxUrl,
    HELIOGRAPH_UPSTREAM_APP_SECRETS: DEVELOPMENT_APP_SECRET,
    HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: DEVELOPMENT_VERIFY_TOKEN,
    HELIOGRAPH_UPSTREAM_APP_ID: APP.id,
    // The sandbox takes any.
    HELIOGRAPH_UPSTREAM_SIGNUP_CONFIG_ID: '1',
    HELIOGRAPH_UPSTREAM_MEDIA_HOSTS: '127.0.0.1',
    HELIOGRAPH_WEBHOOK_ALLOW_HTTP: 'true',
    HELIOGRAPH_WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8,::1/128',
    HELIOGRAPH_SANDBOX_CONTROL_URL: urls.sandboxUrl,
    HELIOGRAPH_SANDBOX_RECEIVER_URL: urls.receiverUrl,
    HELIOGRAPH_ENCRYPTION_KEYS: encryptionKey(dataDir),
  };
}

/** Kept with the data it encrypts: a new one would make the stored secrets unreadable. */
function encryptionKey(dataDir: string): string {
  const key = Buffer.from(keptSecret(join(dataDir, 'encryption-key'), 32), 'base64url');
  return `local:${key.toString('base64')}`;
}
