import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureCertificate } from '../../dev/embedded/certificate.ts';
import { embeddedEnvironment, embeddedUrls } from '../../dev/embedded/embedded-environment.ts';
import { startInfrastructure } from '../../dev/embedded/infrastructure.ts';
import { readPorts } from '../../dev/embedded/ports.ts';
import type { Supervisor } from '../../dev/embedded/supervisor.ts';
import { createTenant } from '../../src/features/accounts/accounts.ts';
import { addWaba } from '../../src/features/accounts/wabas.ts';
import { storeEndpoint } from '../../src/features/endpoints/endpoints.ts';
import { SYSTEM } from '../../src/platform/audit/audit.ts';
import { loadConfig } from '../../src/platform/config/config.ts';
import { DEVELOPMENT_APP_SECRET } from '../../src/platform/config/weak-secrets.ts';
import { makeSecretBox, parseEncryptionKeys } from '../../src/platform/crypto/secret-box.ts';
import { type DatabasePool, openDatabase } from '../../src/platform/postgres/database.ts';
import { migrate } from '../../src/platform/postgres/migrate.ts';
import { loadWorkflowBundle } from '../../src/worker/workflow-bundle.ts';
import { freePortBase } from '../acceptance/support/free-ports.ts';
import { silentLogger } from '../support/silent-logger.ts';
import type { DrillAccount } from './accounts.ts';

const MAIN_SCRIPT = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

/** Short, so that a run ends soon; a lease lasts twice as long. */
export const WEBHOOK_TIMEOUT_MS = 1_500;
export const LEASE_MS = 2 * WEBHOOK_TIMEOUT_MS;
/** The longest there may be: nothing is given up within a run. */
const RETRY_SCHEDULE = [1, 1, 1, 2, 2, 2, ...Array.from({ length: 44 }, () => 5)].join(',');

export type DrillStack = {
  ingressUrl: string;
  appSecret: string;
  sandboxUrl: string;
  database: DatabasePool;
  /** The settings of its processes. */
  environment: Readonly<Record<string, string>>;
};

/** The whole product in `dataDir`: three servers, sandbox upstream, API and two workers; API and the first of them as one process or two. */
export async function startStack(
  dataDir: string,
  supervisor: Supervisor,
  options: {
    accounts: readonly DrillAccount[];
    endpointUrls: readonly string[];
    processes: 'one' | 'two';
    postgresSettings?: readonly string[];
    log: (line: string) => void;
  },
): Promise<DrillStack> {
  const { log, postgresSettings = [] } = options;
  const ports = readPorts({ HELIOGRAPH_EMBEDDED_PORT_BASE: String(await freePortBase()) });
  const [infrastructure, certificate] = await Promise.all([
    startInfrastructure({ dataDir, ports, durable: true, log, supervisor, postgresSettings }),
    ensureCertificate(join(dataDir, 'tls')),
  ]);
  const environment = {
    ...embeddedEnvironment(dataDir, ports, infrastructure, {
      certificate,
      publicUrl: embeddedUrls(ports).apiUrl,
    }),
    HELIOGRAPH_WEBHOOK_TIMEOUT_MS: String(WEBHOOK_TIMEOUT_MS),
    HELIOGRAPH_WEBHOOK_CONNECT_TIMEOUT_MS: '1000',
    HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS: RETRY_SCHEDULE,
  };
  const config = loadConfig(environment);
  const database = openDatabase({ ...config.database, poolMax: 2, applicationName: 'drill' });
  await Promise.all([migrate(database), loadWorkflowBundle(silentLogger)]);
  const secretBox = makeSecretBox(parseEncryptionKeys(config.encryptionKeys));
  await addAccounts({ database, secretBox, actor: SYSTEM }, options);
  const own = (
    name: string,
    args: string[],
    probed: number[],
    path: string,
    more: Record<string, string> = {},
  ) =>
    supervisor.start({
      name,
      command: process.execPath,
      args: [MAIN_SCRIPT, ...args],
      env: { PATH: process.env.PATH, ...environment, ...more },
      logFile: join(dataDir, 'logs', `${name}.log`),
      stopSignal: 'SIGTERM',
      stopGraceMs: 15_000,
      isReady: async () => (await Promise.all(probed.map((port) => answers(port, path)))).every(Boolean),
    });
  const ingressUrl = `http://127.0.0.1:${ports.api}`;
  const sandboxArgs = ['sandbox', 'serve', '--port', String(ports.sandbox), '--ingress-url', ingressUrl];
  await Promise.all([
    own('sandbox', sandboxArgs, [ports.sandbox], '/sandbox/faults'),
    ...(options.processes === 'one'
      ? [own('all', ['all'], [ports.workerHealth, ports.api], '/readyz')]
      : [
          own('api', ['api'], [ports.api], '/readyz'),
          own('worker-1', ['worker'], [ports.workerHealth], '/readyz'),
        ]),
    // The port of the sample receiver, which does not run here.
    own('worker-2', ['worker'], [ports.receiver], '/readyz', {
      HELIOGRAPH_WORKER_HEALTH_PORT: String(ports.receiver),
    }),
  ]);
  const sandboxUrl = `http://127.0.0.1:${ports.sandbox}`;
  return { ingressUrl, appSecret: DEVELOPMENT_APP_SECRET, sandboxUrl, database, environment };
}

async function addAccounts(
  tools: Parameters<typeof addWaba>[0],
  { accounts, endpointUrls }: { accounts: readonly DrillAccount[]; endpointUrls: readonly string[] },
): Promise<void> {
  for (const { wabaId, phoneNumberId, displayPhoneNumber, endpoints } of accounts) {
    const { userId } = await createTenant(tools, `Drill ${wabaId}`);
    const phoneNumbers = [{ phoneNumberId, displayPhoneNumber, verifiedName: 'Drill' }];
    await addWaba(tools, userId, { wabaId, phoneNumbers, accessToken: 'sandbox-access-token' });
    for (const { index, kind, eventTypes } of endpoints) {
      const url = endpointUrls[index] ?? '';
      await storeEndpoint(tools, wabaId, { url, description: kind, eventTypes });
    }
  }
}

async function answers(port: number, path: string): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(2_000) });
  await response.body?.cancel();
  return response.ok;
}
