import type { Database } from '../../platform/postgres/database.ts';
import { execute, query, queryOnly, queryValue } from '../../platform/postgres/sql.ts';
import type { ApiKeyScope } from './api-key.ts';

/** What a platform key may be limited to; `remove` takes tenants and WABAs away, with what waits for their endpoints. */
export const PLATFORM_SCOPES = [
  'read',
  'tenants',
  'wabas',
  'keys',
  'endpoints',
  'users',
  'portal_sessions',
  'setup_links',
  'usage',
  'remove',
] as const;

export type PlatformScope = (typeof PLATFORM_SCOPES)[number];

/** What may be shown of a platform key: never the key, nor its hash. */
export type PlatformKey = {
  id: string;
  name: string;
  prefix: string;
  lastFour: string;
  scopes: PlatformScope[];
  /** What it may give to API keys of tenants. */
  grantableScopes: ApiKeyScope[];
  /** Null: it may be used from anywhere. */
  allowedNetworks: string[] | null;
  state: 'active' | 'expired' | 'revoked';
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
};

const DETAILS = `id, name, prefix, last_four as "lastFour", scopes, grantable_scopes as "grantableScopes",
  allowed_networks as "allowedNetworks",
  case when revoked_at is not null then 'revoked' when expires_at <= now() then 'expired' else 'active' end as state,
  created_at as "createdAt", expires_at as "expiresAt", revoked_at as "revokedAt", last_used_at as "lastUsedAt"`;

export async function listPlatformKeys(database: Database): Promise<PlatformKey[]> {
  return await query<PlatformKey>(database, `select ${DETAILS} from platform_keys order by id`);
}

export type PlatformKeyState = PlatformKey & {
  keyHash: Buffer;
  isRevoked: boolean;
  isExpired: boolean;
  /** Its last use was noted more than a minute ago, or never. */
  isUseStale: boolean;
};

/** Read afresh each time so that a revocation counts at once. */
export async function findPlatformKeys(
  database: Database,
  keyHashes: readonly Buffer[],
): Promise<PlatformKeyState[]> {
  return await query<PlatformKeyState>(
    database,
    `select ${DETAILS}, key_hash as "keyHash", revoked_at is not null as "isRevoked",
            coalesce(expires_at <= now(), false) as "isExpired",
            coalesce(last_used_at < now() - interval '1 minute', true) as "isUseStale"
       from platform_keys where key_hash = any (cast(:keyHashes as bytea[]))`,
    { keyHashes },
  );
}

export async function notePlatformKeyUse(database: Database, id: string): Promise<void> {
  const text = `update platform_keys set last_used_at = now()
                 where id = :id and (last_used_at is null or last_used_at < now() - interval '1 minute')`;
  await execute(database, text, { id });
}

export async function countPlatformKeys(database: Database): Promise<number> {
  const text = 'select count(*)::integer from platform_keys where revoked_at is null';
  return (await queryValue<number>(database, text)) ?? 0;
}

export async function insertPlatformKey(
  database: Database,
  key: Pick<
    PlatformKey,
    'name' | 'prefix' | 'lastFour' | 'scopes' | 'grantableScopes' | 'allowedNetworks' | 'expiresAt'
  > & {
    keyHash: Buffer;
  },
): Promise<PlatformKey> {
  return await queryOnly<PlatformKey>(
    database,
    `insert into platform_keys (name, key_hash, prefix, last_four, scopes, grantable_scopes, allowed_networks, expires_at)
     values (:name, :keyHash, :prefix, :lastFour, :scopes, :grantableScopes, :allowedNetworks, :expiresAt) returning ${DETAILS}`,
    key,
  );
}

/** The first time counts; null: there is no such key. */
export async function revokePlatformKeyRow(database: Database, id: string): Promise<Date | null> {
  const text =
    'update platform_keys set revoked_at = coalesce(revoked_at, now()) where id = :id returning revoked_at';
  return await queryValue<Date>(database, text, { id });
}
