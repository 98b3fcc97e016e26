import type { Database } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';

/** What a tenant stores, and what it has uploaded on the present UTC day. */
export type TenantUsage = {
  storedBytes: number;
  storedFiles: number;
  uploadedBytes: number;
  uploadedFiles: number;
};

/** Of one tenant; triggers and uploads keep it, so that it costs no count. */
export async function readTenantUsage(database: Database, tenantId: string): Promise<TenantUsage> {
  const [row] = await query<Record<keyof TenantUsage, string>>(
    database,
    `select stored_bytes as "storedBytes", stored_files as "storedFiles",
            case when upload_day = (now() at time zone 'utc')::date then uploaded_bytes else 0 end as "uploadedBytes",
            case when upload_day = (now() at time zone 'utc')::date then uploaded_files else 0 end as "uploadedFiles"
       from tenant_usage where tenant_id = ?`,
    [tenantId],
  );
  const { storedBytes = 0, storedFiles = 0, uploadedBytes = 0, uploadedFiles = 0 } = row ?? {};
  return {
    storedBytes: Number(storedBytes),
    storedFiles: Number(storedFiles),
    uploadedBytes: Number(uploadedBytes),
    uploadedFiles: Number(uploadedFiles),
  };
}

/** The largest share of a quota that any tenant has used; 0 when no tenant has one. */
export async function readQuotaUse(database: Database): Promise<number> {
  const [row] = await query<{ share: number | null }>(
    database,
    `select max(greatest(u.stored_bytes / nullif(cast(p.stored_bytes_quota as float8), 0),
                         t.files / nullif(cast(p.upload_files_per_day as float8), 0),
                         t.bytes / nullif(cast(p.upload_bytes_per_day as float8), 0))) as share
       from tenant_policies p join tenant_usage u on u.tenant_id = p.tenant_id,
            lateral (select case when u.upload_day = (now() at time zone 'utc')::date then u.uploaded_files else 0 end as files,
                            case when u.upload_day = (now() at time zone 'utc')::date then u.uploaded_bytes else 0 end as bytes) as t`,
  );
  return row?.share ?? 0;
}
