import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query, queryOne, queryOnly, queryValue } from '../../platform/postgres/sql.ts';
import { type ApiKeyScope, DEFAULT_SCOPES } from './api-key.ts';
import type { SendLimits } from './send-limits.ts';

export type ApiKeyState = SendLimits & {
  id: string;
  wabaId: string;
  tenantId: string;
  scopes: ApiKeyScope[];
  /** Networks that it may be used from; null: anywhere. */
  allowedNetworks: string[] | null;
  isRevoked: boolean;
  isExpired: boolean;
  /** Its last use was noted more than a minute ago, or never. */
  isUseStale: boolean;
  /** Its tenant is suspended. */
  isSuspended: boolean;
};

export async function findApiKey(database: Database, keyHash: Buffer): Promise<ApiKeyState | null> {
  const [state] = await findApiKeys(database, [keyHash]);
  return state ?? null;
}

/** Read afresh each time so that a revocation counts at once; the clock is the database's, so that processes agree. */
export async function findApiKeys(
  database: Database,
  keyHashes: readonly Buffer[],
): Promise<(ApiKeyState & { keyHash: Buffer })[]> {
  return await query<ApiKeyState & { keyHash: Buffer }>(
    database,
    `select k.key_hash as "keyHash", k.id, k.waba_id as "wabaId", w.tenant_id as "tenantId", k.scopes,
            k.allowed_networks as "allowedNetworks", k.max_messages_per_day as "maxMessagesPerDay", k.recipients,
            k.revoked_at is not null as "isRevoked", coalesce(k.expires_at <= now(), false) as "isExpired",
            coalesce(k.last_used_at < now() - interval '1 minute', true) as "isUseStale",
            t.suspended_at is not null as "isSuspended"
       from api_keys k join wabas w using (waba_id) join tenants t on t.id = w.tenant_id where k.key_hash = any (cast(:keyHashes as bytea[]))`,
    { keyHashes },
  );
}

/** Notes that a key is in use, at most once a minute. */
export async function noteApiKeyUse(database: Database, wabaId: string, keyId: string): Promise<void> {
  await execute(
    database,
    `update api_keys set last_used_at = now()
      where waba_id = :wabaId and id = :keyId and (last_used_at is null or last_used_at < now() - interval '1 minute')`,
    { wabaId, keyId },
  );
}

export type NewApiKey = Partial<SendLimits> & {
  name: string;
  keyHash: Buffer;
  prefix: string;
  lastFour: string;
  expiresAt: Date | null;
  /** All of them unless given. */
  scopes?: readonly ApiKeyScope[];
  allowedNetworks?: readonly string[] | null;
  /** The name that the operator's program has for it. */
  ref?: string | null;
};

export async function insertApiKey(database: Database, wabaId: string, key: NewApiKey): Promise<string> {
  const row = await queryOnly<{ id: string }>(
    database,
    `insert into api_keys (waba_id, name, key_hash, prefix, last_four, expires_at, scopes, allowed_networks,
                           max_messages_per_day, recipients, ref)
     values (:wabaId, :name, :keyHash, :prefix, :lastFour, :expiresAt, :scopes, :allowedNetworks, :maxMessagesPerDay, :recipients,
             :ref) returning id`,
    {
      wabaId,
      name: key.name,
      keyHash: key.keyHash,
      prefix: key.prefix,
      lastFour: key.lastFour,
      expiresAt: key.expiresAt,
      scopes: key.scopes ?? DEFAULT_SCOPES,
      allowedNetworks: key.allowedNetworks ?? null,
      maxMessagesPerDay: key.maxMessagesPerDay ?? null,
      recipients: key.recipients ?? 'any',
      ref: key.ref ?? null,
    },
  );
  return row.id;
}

/** Sets the networks that a key may be used from. False: the WABA has no such key. */
export async function saveAllowedNetworks(
  database: Database,
  wabaId: string,
  keyId: string,
  networks: readonly string[] | null,
): Promise<boolean> {
  const text =
    'update api_keys set allowed_networks = :networks::text[] where waba_id = :wabaId and id = :keyId';
  return (await execute(database, text, { networks, wabaId, keyId })) === 1;
}

/** Sets what a key may send. False: the WABA has no such key. */
export async function saveSendLimits(
  trx: Transaction,
  wabaId: string,
  keyId: string,
  { maxMessagesPerDay, recipients }: SendLimits,
): Promise<boolean> {
  const text =
    'update api_keys set max_messages_per_day = :maxMessagesPerDay, recipients = :recipients where waba_id = :wabaId and id = :keyId';
  return (await execute(trx, text, { maxMessagesPerDay, recipients, wabaId, keyId })) === 1;
}

/** Revokes a key for good; the first time counts. False: the WABA has no such key. */
export async function revokeApiKey(database: Database, wabaId: string, keyId: string): Promise<boolean> {
  const text =
    'update api_keys set revoked_at = coalesce(revoked_at, now()) where waba_id = :wabaId and id = :keyId';
  return (await execute(database, text, { wabaId, keyId })) === 1;
}

/** Unless it ends before that anyway; 0: at once. Returns when it expires; null: it is revoked or gone. */
export async function endApiKeyWithin(
  database: Database,
  wabaId: string,
  keyId: string,
  hours: number,
): Promise<Date | null> {
  return await queryValue<Date>(
    database,
    `update api_keys set expires_at = least(expires_at, now() + :hours * interval '1 hour')
      where waba_id = :wabaId and id = :keyId and revoked_at is null returning expires_at`,
    { hours, wabaId, keyId },
  );
}

type ExpiringKey = Pick<ApiKeyDetails, 'id' | 'wabaId' | 'name' | 'lastFour'> & {
  tenantId: string;
  expiresAt: Date;
};

/** Up to `limit` keys that expire within some days, or did, and were not revoked or replaced by another one. */
export async function listExpiringKeys(
  database: Database,
  days: number,
  limit: number,
): Promise<ExpiringKey[]> {
  return await query<ExpiringKey>(
    database,
    `select k.id, k.waba_id as "wabaId", w.tenant_id as "tenantId", k.name, k.last_four as "lastFour",
            k.expires_at as "expiresAt"
       from api_keys k join wabas w on w.waba_id = k.waba_id and w.removed_at is null
      where k.revoked_at is null and k.expires_at > now() - :days * interval '1 day'
        and k.expires_at <= now() + :days * interval '1 day'
        and not exists (select from api_key_requests r where r.replaces_key_id = k.id and r.state = 'revealed')
      order by k.id limit :limit`,
    { days, limit },
  );
}

/** What may be shown of a key after it was made: never the key, nor its hash. */
export type ApiKeyDetails = SendLimits & {
  id: string;
  wabaId: string;
  name: string;
  prefix: string;
  lastFour: string;
  scopes: ApiKeyScope[];
  allowedNetworks: string[] | null;
  state: 'active' | 'expired' | 'revoked';
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
};

const DETAILS = `id, waba_id as "wabaId", name, prefix, last_four as "lastFour", scopes,
  allowed_networks as "allowedNetworks", max_messages_per_day as "maxMessagesPerDay", recipients,
  case when revoked_at is not null then 'revoked' when expires_at <= now() then 'expired' else 'active' end as state,
  created_at as "createdAt", expires_at as "expiresAt", revoked_at as "revokedAt", last_used_at as "lastUsedAt"`;

export async function listApiKeys(database: Database, wabaId: string): Promise<ApiKeyDetails[]> {
  const text = `select ${DETAILS} from api_keys where waba_id = :wabaId order by id`;
  return await query<ApiKeyDetails>(database, text, { wabaId });
}

export async function findApiKeyDetails(
  database: Database,
  wabaId: string,
  id: string,
): Promise<ApiKeyDetails | null> {
  const text = `select ${DETAILS} from api_keys where waba_id = :wabaId and id = :id`;
  return await queryOne<ApiKeyDetails>(database, text, { wabaId, id });
}

/** The key that the operator's program calls `ref`; null: there is none. */
export async function findKeyByRef(
  database: Database,
  wabaId: string,
  ref: string,
): Promise<ApiKeyDetails | null> {
  const text = `select ${DETAILS} from api_keys where waba_id = :wabaId and ref = :ref`;
  return await queryOne<ApiKeyDetails>(database, text, { wabaId, ref });
}

/** Lets another key have the name of this one. */
export async function freeKeyRef(trx: Transaction, wabaId: string, id: string): Promise<void> {
  await execute(trx, 'update api_keys set ref = null where waba_id = :wabaId and id = :id', { wabaId, id });
}

export async function findWabaOfKey(database: Database, id: string): Promise<string | null> {
  return await queryValue<string>(database, 'select waba_id from api_keys where id = :id', { id });
}
