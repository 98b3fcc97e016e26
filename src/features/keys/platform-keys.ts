import { type Audited, recordBy } from '../../platform/audit/audit.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import {
  checkingMember,
  checkName,
  checkRowId,
  checkTime,
  invalidValue,
  RequestError,
  shown,
} from '../../platform/request-input.ts';
import { type ApiKeyScope, apiKeyHints, hashApiKey, newPlatformKey } from './api-key.ts';
import { checkNetworks, checkScopes } from './api-keys.ts';
import {
  countPlatformKeys,
  insertPlatformKey,
  listPlatformKeys,
  PLATFORM_SCOPES,
  type PlatformKey,
  type PlatformScope,
  revokePlatformKeyRow,
} from './platform-key-store.ts';

type Tools = { database: Database } & Audited;

const MAX_KEYS = 50;

/** With one of these a stolen key makes a way in, or destroys something: in production they are bound to networks. */
const NEED_NETWORKS: readonly PlatformScope[] = ['keys', 'endpoints', 'portal_sessions', 'users', 'remove'];

const DEFAULT_GRANTABLE: readonly ApiKeyScope[] = ['send', 'manage_webhooks'];

export type NewPlatformKey = {
  name: string;
  scopes?: readonly string[];
  grantableScopes?: readonly string[];
  networks?: readonly string[];
  fromAnywhere?: boolean;
  expiresAt?: Date | null;
};

/**
 * Makes a key for the operator's own program; `platformKey` is shown this once. A new key may only read.
 * Throws RequestError: `invalid_value`, `too_many_platform_keys`.
 */
export async function createPlatformKey(
  { database, actor }: Tools,
  given: NewPlatformKey,
  mode: 'production' | 'development',
): Promise<PlatformKey & { platformKey: string }> {
  const name = await checkingMember('name', () => checkName('The name of the key', given.name));
  const scopes = await checkingMember('scopes', () => checkPlatformScopes(given.scopes));
  const grantableScopes = await checkingMember('grantableScopes', () =>
    grantableOf(scopes, given.grantableScopes),
  );
  const allowedNetworks = await checkingMember('networks', () => checkNetworks(given.networks ?? null));
  const { fromAnywhere = false, expiresAt = null } = given;
  if (expiresAt !== null) checkTime(expiresAt);
  if (fromAnywhere && allowedNetworks !== null)
    throw invalidValue('Give networks, or say that it may be used from anywhere.', 'fromAnywhere');
  if (mode === 'production' && allowedNetworks === null && !fromAnywhere) refuseAnywhere(scopes);
  const platformKey = newPlatformKey();
  const { prefix, last4: lastFour } = apiKeyHints(platformKey);
  const row = {
    name,
    prefix,
    lastFour,
    scopes,
    grantableScopes,
    allowedNetworks,
    expiresAt,
    keyHash: hashApiKey(platformKey),
  };
  const key = await database.transaction(async (trx) => {
    await query(trx, `select pg_advisory_xact_lock(hashtextextended('platform keys', 0))`);
    if ((await countPlatformKeys(trx)) >= MAX_KEYS) {
      throw new RequestError(
        'too_many_platform_keys',
        `There are ${MAX_KEYS} platform keys. Revoke one first.`,
      );
    }
    const made = await insertPlatformKey(trx, row);
    const networks = allowedNetworks?.join(', ') ?? 'anywhere';
    await note({ database: trx, actor }, 'platform_key.created', made, {
      name,
      prefix,
      scopes: scopes.join(', '),
      grantableScopes: grantableScopes.join(', '),
      networks,
      expiresAt: expiresAt?.toISOString() ?? null,
    });
    return made;
  });
  return { ...key, platformKey };
}

function checkPlatformScopes(names: readonly string[] = ['read']): PlatformScope[] {
  const unknown = names.find((name) => !PLATFORM_SCOPES.some((scope) => scope === name));
  const known = PLATFORM_SCOPES.join(', ');
  if (unknown !== undefined) throw invalidValue(`A scope must be one of ${known}, not ${shown(unknown)}.`);
  if (names.length === 0) throw invalidValue(`Name at least one scope of ${known}.`);
  return PLATFORM_SCOPES.filter((scope) => names.includes(scope));
}

function grantableOf(scopes: readonly PlatformScope[], given: readonly string[] | undefined): ApiKeyScope[] {
  if (scopes.includes('keys')) return checkScopes(given ?? DEFAULT_GRANTABLE);
  if (given === undefined) return [];
  throw invalidValue('Grantable scopes are for keys with the scope "keys".');
}

function refuseAnywhere(scopes: readonly PlatformScope[]): void {
  const bound = scopes.filter((scope) => NEED_NETWORKS.includes(scope));
  if (bound.length === 0) return;
  throw invalidValue(
    `A key with ${bound.join(', ')} needs networks. If it cannot have any, say that it may be used from anywhere.`,
    'networks',
  );
}

/** Valid keys that may be used from anywhere, although they have a scope that needs networks in production. */
export async function listUnboundPlatformKeys(database: Database): Promise<PlatformKey[]> {
  const keys = await listPlatformKeys(database);
  return keys.filter(
    ({ state, allowedNetworks, scopes }) =>
      state === 'active' && allowedNetworks === null && scopes.some((scope) => NEED_NETWORKS.includes(scope)),
  );
}

/** A second time changes nothing and tells when it was. Throws RequestError: `invalid_value`, `unknown_key`. */
export async function revokePlatformKey(
  { database, actor }: Tools,
  id: string,
): Promise<{ id: string; revokedAt: Date }> {
  checkRowId('The id of the key', id);
  return await database.transaction(async (trx) => {
    const revokedAt = await revokePlatformKeyRow(trx, id);
    if (revokedAt === null) throw new RequestError('unknown_key', `There is no platform key ${id}.`);
    await note({ database: trx, actor }, 'platform_key.revoked', { id }, {});
    return { id, revokedAt };
  });
}

async function note(
  { database, actor }: Tools,
  action: string,
  { id }: { id: string },
  detail: Record<string, string | null>,
): Promise<void> {
  await recordBy(database, actor, {
    tenantId: null,
    wabaId: null,
    action,
    target: platformKeyName(id),
    detail,
  });
}

/** As the audit log names it. */
export function platformKeyName(id: string): string {
  return `platform key ${id}`;
}
