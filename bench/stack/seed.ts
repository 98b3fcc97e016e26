import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { StoredEndpointOptions } from '../../src/engine/endpoint/store.ts';
import type * as Accounts from '../../src/features/accounts/accounts.ts';
import type * as Wabas from '../../src/features/accounts/wabas.ts';
import type * as Endpoints from '../../src/features/endpoints/endpoints.ts';
import { SYSTEM } from '../../src/platform/audit/audit.ts';
import type { SealedDatabase } from '../../src/platform/crypto/sealed-database.ts';
import type * as Databases from '../../src/platform/postgres/database.ts';
import type { DatabasePool } from '../../src/platform/postgres/database.ts';
import type { Target } from '../run-plan.ts';
import { ROOT } from './heliograph-process.ts';

/** `endpoint` is the position of its URL. */
export type SeededTarget = Target & { endpointId: string; endpoint: number };

/** `checkout` is the directory of the product that is measured; null or left out: this one. */
type Installation = SealedDatabase & { databaseUrl?: string; checkout?: string | null };

/**
 * One tenant, WABA, number and endpoint per URL, so that a body for a number reaches exactly one endpoint. The code of the
 * measured product stores them: another version has other columns.
 */
export async function seedTargets(
  installation: Installation,
  firstNumber: number,
  urls: readonly string[],
  options: Partial<StoredEndpointOptions> = {},
): Promise<SeededTarget[]> {
  const product = await productOf(installation);
  try {
    const targets: SeededTarget[] = [];
    for (const [index, url] of urls.entries()) {
      const target = await seedTarget(product, firstNumber + index, {
        url,
        description: 'bench',
        ...options,
      });
      targets.push({ ...target, endpoint: index });
    }
    return targets;
  } finally {
    await product.ownDatabase?.destroy();
  }
}

/** One tenant, WABA and number with an endpoint per URL. */
export async function seedWideTarget(
  installation: Installation,
  number: number,
  [first = '', ...others]: readonly string[],
): Promise<{ target: SeededTarget; endpointIds: string[] }> {
  const product = await productOf(installation);
  try {
    const { endpoints, tools } = product;
    const options = { description: 'bench', eventTypes: null };
    const target = await seedTarget(product, number, { url: first, ...options });
    const endpointIds = [target.endpointId];
    for (const url of others)
      endpointIds.push((await endpoints.storeEndpoint(tools, target.wabaId, { url, ...options })).id);
    return { target: { ...target, endpoint: 0 }, endpointIds };
  } finally {
    await product.ownDatabase?.destroy();
  }
}

type Product = Awaited<ReturnType<typeof productOf>>;

async function seedTarget(
  { tools, accounts, wabas, endpoints }: Product,
  number: number,
  options: Partial<StoredEndpointOptions> & { url: string },
): Promise<Target & { endpointId: string }> {
  const suffix = String(number).padStart(6, '0');
  const wabaId = `900000000${suffix}`;
  const phoneNumberId = `800000000${suffix}`;
  const { userId } = await accounts.createTenant(tools, `Bench ${suffix}`);
  const phone = { phoneNumberId, displayPhoneNumber: '12025550100', verifiedName: `Bench ${suffix}` };
  await wabas.addWaba(tools, userId, { wabaId, phoneNumbers: [phone], accessToken: null });
  const { id: endpointId } = await endpoints.storeEndpoint(tools, wabaId, { eventTypes: null, ...options });
  return { wabaId, phoneNumberId, endpointId };
}

/** Files of the product, in its `src`, whose functions store what it is measured with. */
export const PRODUCT_FILES = {
  accounts: 'features/accounts/accounts.ts',
  wabas: 'features/accounts/wabas.ts',
  endpoints: 'features/endpoints/endpoints.ts',
  database: 'platform/postgres/database.ts',
} as const;

/** The functions of the product that is measured, and, of another checkout, its own way to the database. */
async function productOf({ database, secretBox, databaseUrl, checkout = null }: Installation) {
  const at = async (path: string): Promise<unknown> =>
    await import(pathToFileURL(join(resolve(checkout ?? ROOT), 'src', path)).href);
  const accounts = (await at(PRODUCT_FILES.accounts)) as typeof Accounts;
  const wabas = (await at(PRODUCT_FILES.wabas)) as typeof Wabas;
  const endpoints = (await at(PRODUCT_FILES.endpoints)) as typeof Endpoints;
  const ownDatabase = checkout === null ? null : await openOwn(at, databaseUrl);
  const tools = { database: ownDatabase ?? database, secretBox, actor: SYSTEM };
  return { tools, accounts, wabas, endpoints, ownDatabase };
}

async function openOwn(
  at: (path: string) => Promise<unknown>,
  url: string | undefined,
): Promise<DatabasePool> {
  if (url === undefined) throw new Error('another checkout needs the address of the database');
  const { openDatabase } = (await at(PRODUCT_FILES.database)) as typeof Databases;
  return openDatabase({ url, poolMax: 2, applicationName: 'heliograph-bench-seed' });
}
