import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../platform/config/config.ts';
import { makeSecretBox, parseEncryptionKeys } from '../platform/crypto/secret-box.ts';
import { openLogger } from '../platform/json-logger.ts';
import { openDatabase } from '../platform/postgres/database.ts';
import { migrate } from '../platform/postgres/migrate.ts';
import { loadWorkflowBundle } from '../worker/workflow-bundle.ts';
import { seedDemoAccounts } from './demo-accounts.ts';
import { seedDemoUsers } from './demo-users.ts';
import { type ApplicationPart, type EmbeddedContext, startEmbedded } from './embedded/start.ts';

const MAIN_SCRIPT = fileURLToPath(new URL('../main.ts', import.meta.url));

/** What the sandbox upstream takes for an access token. */
const SANDBOX_ACCESS_TOKEN = 'sandbox-access-token';

/** Runs the whole product on this machine until Ctrl-C; resolves with the exit code. */
export async function runEmbedded(options: { fresh: boolean; dataDir: string }): Promise<number> {
  return await startEmbedded({ ...options, mainScript: MAIN_SCRIPT, afterInfrastructure: prepare, parts });
}

async function prepare(context: EmbeddedContext) {
  const config = loadConfig(context.environment);
  const database = openDatabase({ ...config.database, applicationName: 'heliograph-start' });
  try {
    await migrate(database);
    const [tenants] = await Promise.all([
      seedDemoAccounts(
        { database, secretBox: makeSecretBox(parseEncryptionKeys(config.encryptionKeys)) },
        {
          receiverUrl: `http://127.0.0.1:${context.ports.receiver}`,
          sandboxAccessToken: SANDBOX_ACCESS_TOKEN,
          previous: context.previousTenants,
        },
      ),
      loadWorkflowBundle(openLogger({ logLevel: 'warn' }, 'start')),
    ]);
    const [first] = tenants;
    const tenantId = first === undefined ? null : String(first.userId);
    const users = context.portalUsers.map((user) => ({
      ...user,
      tenantId: user.role === 'operator' ? null : tenantId,
    }));
    await seedDemoUsers(database, users);
    const secrets = tenants.map((tenant) => tenant.webhookSecret);
    await writeFile(receiverSecretsFile(context), JSON.stringify({ secrets }), { mode: 0o600 });
    return tenants;
  } finally {
    await database.destroy();
  }
}

function receiverSecretsFile(context: EmbeddedContext): string {
  return join(context.dataDir, 'receiver-secrets.json');
}

function parts(context: EmbeddedContext): ApplicationPart[] {
  const { ports } = context;
  const answers = (port: number, path: string) => async () => (await probe(port, path)).ok;
  return [
    {
      name: 'receiver',
      args: [
        'sandbox',
        'receive',
        '--port',
        String(ports.receiver),
        '--secrets-file',
        receiverSecretsFile(context),
      ],
      echo: true,
      isReady: answers(ports.receiver, '/received'),
    },
    {
      name: 'sandbox',
      args: [
        'sandbox',
        'serve',
        '--port',
        String(ports.sandbox),
        '--ingress-url',
        `http://127.0.0.1:${ports.api}`,
      ],
      isReady: answers(ports.sandbox, '/sandbox/faults'),
    },
    {
      name: 'heliograph',
      aliases: ['api', 'worker'],
      args: ['all'],
      stopGraceMs: 45_000,
      isReady: async () =>
        (await answers(ports.workerHealth, '/readyz')()) && (await answers(ports.api, '/readyz')()),
    },
  ];
}

async function probe(port: number, path: string): Promise<{ ok: boolean }> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(2_000) });
  await response.body?.cancel();
  return response;
}
