import type { Database } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';
import type { ApiKeyScope } from './api-key-scopes.ts';

/** What may be shown of a key after it was made: never the key, nor its hash. */
export type ApiKeyDetails = {
  id: string;
  wabaId: string;
  name: string;
  prefix: string;
  lastFour: string;
  scopes: ApiKeyScope[];
  state: 'active' | 'expired' | 'revoked';
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
};

const DETAILS = `id, waba_id as "wabaId", name, prefix, last_four as "lastFour", scopes,
  case when revoked_at is not null then 'revoked' when expires_at <= now() then 'expired' else 'active' end as state,
  created_at as "createdAt", expires_at as "expiresAt", revoked_at as "revokedAt", last_used_at as "lastUsedAt"`;

/** All keys of a WABA, the oldest first. */
export async function listApiKeys(database: Database, wabaId: string): Promise<ApiKeyDetails[]> {
  return await query<ApiKeyDetails>(
    database,
    `select ${DETAILS} from api_keys where waba_id = ? order by id`,
    [wabaId],
  );
}

/** One key of a WABA; null when it has none such. */
export async function findApiKeyDetails(
  database: Database,
  wabaId: string,
  id: string,
): Promise<ApiKeyDetails | null> {
  const [row] = await query<ApiKeyDetails>(
    database,
    `select ${DETAILS} from api_keys where waba_id = ? and id = ?`,
    [wabaId, id],
  );
  return row ?? null;
}

/** For operators, who address keys of every tenant; null when there is none such. */
export async function findApiKeyForOperator(database: Database, id: string): Promise<ApiKeyDetails | null> {
  const [row] = await query<ApiKeyDetails>(database, `select ${DETAILS} from api_keys where id = ?`, [id]);
  return row ?? null;
}
