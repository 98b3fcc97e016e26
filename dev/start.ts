import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ENDPOINT_SECRET } from '../src/engine/endpoint/endpoint-secrets.ts';
import { findEndpointSecret, listEndpoints, saveEndpointOptions } from '../src/engine/endpoint/store.ts';
import { createTenant, findWaba } from '../src/features/accounts/accounts.ts';
import { addWaba } from '../src/features/accounts/wabas.ts';
import { storeEndpoint } from '../src/features/endpoints/endpoints.ts';
import { API_KEY_SCOPES, hashApiKey } from '../src/features/keys/api-key.ts';
import { findApiKey } from '../src/features/keys/api-key-store.ts';
import { createKey } from '../src/features/keys/api-keys.ts';
import { insertMembership } from '../src/features/users/memberships.ts';
import { checkPassword, hashNewPassword } from '../src/features/users/passwords.ts';
import type { PortalRole } from '../src/features/users/user-input.ts';
import {
  findPasswordHash,
  findUsersByEmail,
  insertUser,
  replacePasswordHash,
} from '../src/features/users/user-store.ts';
import { type Audited, SYSTEM } from '../src/platform/audit/audit.ts';
import { loadConfig } from '../src/platform/config/config.ts';
import type { SealedDatabase } from '../src/platform/crypto/sealed-database.ts';
import { makeSecretBox, parseEncryptionKeys } from '../src/platform/crypto/secret-box.ts';
import { openLogger } from '../src/platform/logger.ts';
import { type Database, openDatabase } from '../src/platform/postgres/database.ts';
import { migrate } from '../src/platform/postgres/migrate.ts';
import { loadWorkflowBundle } from '../src/worker/workflow-bundle.ts';
import { type ApplicationPart, type EmbeddedContext, startEmbedded } from './embedded/start.ts';

const MAIN_SCRIPT = fileURLToPath(new URL('../src/main.ts', import.meta.url));

/** What the sandbox upstream takes for an access token. */
const SANDBOX_ACCESS_TOKEN = 'sandbox-access-token';

/** Runs the whole product on this machine until Ctrl-C; resolves with the exit code. */
export async function runEmbedded(options: {
  fresh: boolean;
  https: boolean;
  dataDir: string;
}): Promise<number> {
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
  const joinsLater = context.infrastructure.missing.has('Temporal');
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
      isReady: () => answers(ports.receiver, '/received'),
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
      isReady: () => answers(ports.sandbox, '/sandbox/faults'),
    },
    {
      name: 'heliograph',
      aliases: ['api', 'worker'],
      args: ['all'],
      stopGraceMs: 45_000,
      isReady: async () =>
        (await workerDelivers(ports.workerHealth, joinsLater)) && (await answers(ports.api, '/readyz')),
    },
  ];
}

/** A worker counts as starting until it has reached Temporal, which may join later. */
async function workerDelivers(port: number, joinsLater: boolean): Promise<boolean> {
  const response = await probe(port, '/readyz');
  const { checks } = (await response.json()) as { checks: Record<string, 'ok' | 'failed'> };
  const isFine = Object.entries(checks).every(([name, result]) => name === 'temporal' || result === 'ok');
  return response.ok || (joinsLater && isFine);
}

async function answers(port: number, path: string): Promise<boolean> {
  const response = await probe(port, path);
  await response.body?.cancel();
  return response.ok;
}

async function probe(port: number, path: string): Promise<Response> {
  return await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(2_000) });
}

/** A user of the demonstration's portal. */
type DemoUser = {
  email: string;
  name: string;
  role: PortalRole;
  tenantId: string | null;
  password: string;
};

/** Makes sure that the demonstration's users exist with these passwords, which is what the terminal says of them. */
export async function seedDemoUsers(database: Database, users: readonly DemoUser[]): Promise<void> {
  for (const { email, name, role, tenantId, password } of users) {
    const [known] = await findUsersByEmail(database, email);
    const previous = known === undefined ? null : await findPasswordHash(database, known.id);
    if (previous !== null && (await checkPassword(password, [previous])).length > 0) continue;
    const next = await hashNewPassword(database, password, email);
    if (known !== undefined) {
      await replacePasswordHash(database, known.id, { previous, next });
      continue;
    }
    await database.transaction(async (trx) => {
      const isOperator = role === 'operator';
      const userId = await insertUser(trx, { email, name, isOperator, passwordHash: next });
      if (!isOperator && tenantId !== null) await insertMembership(trx, { userId, tenantId, role });
    });
  }
}

/** One tenant of the demonstration with everything that its server needs. Holds secrets. */
type DemoTenant = {
  userId: number;
  businessName: string;
  wabaId: string;
  phoneNumberIds: string[];
  apiKey: string;
  endpointId: string;
  webhookSecret: string;
};

/** What an earlier run made: its API keys can be had nowhere else. */
type PreviousTenant = { readonly wabaId: string; readonly apiKey: string; readonly endpointId: string };

/** The ids follow the conventions of the upstream fixtures. */
const DEMO_ACCOUNTS = [
  {
    businessName: 'Fixture Store',
    wabaId: '900000000000101',
    phoneNumbers: [
      {
        phoneNumberId: '800000000000111',
        displayPhoneNumber: '12025550100',
        verifiedName: 'Fixture Store',
      },
      {
        phoneNumberId: '800000000000112',
        displayPhoneNumber: '12025550101',
        verifiedName: 'Fixture Store 2',
      },
    ],
  },
  {
    businessName: 'Fixture Bazaar',
    wabaId: '900000000000202',
    phoneNumbers: [
      {
        phoneNumberId: '800000000000221',
        displayPhoneNumber: '910000000221',
        verifiedName: 'Fixture Bazaar',
      },
    ],
  },
];

/**
 * Makes sure that the demonstration's tenants exist, each with WABA, numbers, access token, a usable API key and a
 * webhook endpoint at `receiverUrl`. What is there is kept; a key that is not in `previous` is lost and made anew.
 * Throws SecretBoxError when the database was filled under another encryption key.
 */
export async function seedDemoAccounts(
  { database, secretBox }: SealedDatabase,
  options: { receiverUrl: string; sandboxAccessToken: string; previous: readonly PreviousTenant[] },
): Promise<DemoTenant[]> {
  const tools = { database, secretBox, actor: SYSTEM };
  const tenants: DemoTenant[] = [];
  for (const account of DEMO_ACCOUNTS) {
    const { businessName, wabaId, phoneNumbers } = account;
    const known = await findWaba(tools.database, wabaId);
    const userId = known?.tenantId ?? (await createTenant(tools, businessName)).userId;
    await addWaba(tools, userId, { wabaId, phoneNumbers, accessToken: options.sandboxAccessToken });
    const previous = options.previous.find((tenant) => tenant.wabaId === wabaId);
    const url = `${options.receiverUrl}/webhook/${wabaId}`;
    tenants.push({
      userId: Number(userId),
      businessName: known?.businessName ?? businessName,
      wabaId,
      phoneNumberIds: phoneNumbers.map((number) => number.phoneNumberId),
      apiKey: await usableKey(tools, wabaId, previous?.apiKey),
      ...(await usableEndpoint(tools, wabaId, url, previous?.endpointId)),
    });
  }
  return tenants;
}

async function usableKey(
  tools: SealedDatabase & Audited,
  wabaId: string,
  previousKey: string | undefined,
): Promise<string> {
  if (previousKey !== undefined) {
    const key = await findApiKey(tools.database, hashApiKey(previousKey));
    if (key?.wabaId === wabaId && !key.isRevoked && !key.isExpired) return previousKey;
  }
  return (await createKey(tools, wabaId, { name: 'demo', expiresAt: null, scopes: API_KEY_SCOPES })).apiKey;
}

/** The receiver's port may have changed since the earlier run: its endpoint, and what waits for it, moves along. */
async function usableEndpoint(
  tools: SealedDatabase & Audited,
  wabaId: string,
  url: string,
  previousId: string | undefined,
): Promise<{ endpointId: string; webhookSecret: string }> {
  const endpoints = await listEndpoints(tools.database, wabaId);
  const kept =
    endpoints.find((endpoint) => endpoint.id === previousId) ??
    endpoints.find((endpoint) => endpoint.url === url);
  if (kept === undefined) {
    const description = 'sample tenant of the demonstration';
    const { id, secret } = await storeEndpoint(tools, wabaId, { url, description });
    return { endpointId: id, webhookSecret: secret };
  }
  const moved = { ...kept, url, urlSetByKey: null };
  if (kept.url !== url) await tools.database.transaction((trx) => saveEndpointOptions(trx, wabaId, moved));
  const sealed = await findEndpointSecret(tools.database, wabaId, kept.id);
  if (sealed === null) throw new Error('a webhook endpoint vanished while it was read');
  return { endpointId: kept.id, webhookSecret: tools.secretBox.open(sealed, ENDPOINT_SECRET.place(kept.id)) };
}
