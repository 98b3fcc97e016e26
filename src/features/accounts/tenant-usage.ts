import type { Database } from '../../platform/postgres/database.ts';
import { query, queryValue } from '../../platform/postgres/sql.ts';

/** What a tenant stores, and what it has uploaded on the present UTC day. */
export type TenantUsage = {
  storedBytes: number;
  storedFiles: number;
  uploadedBytes: number;
  uploadedFiles: number;
};

/** What was uploaded on the present UTC day; the row may be of an earlier one. */
const today = (column: 'uploaded_bytes' | 'uploaded_files') =>
  `case when u.upload_day = (now() at time zone 'utc')::date then u.${column} else 0 end`;

const USAGE = `coalesce(u.stored_bytes, 0) as "storedBytes", coalesce(u.stored_files, 0) as "storedFiles",
  coalesce(${today('uploaded_bytes')}, 0) as "uploadedBytes", coalesce(${today('uploaded_files')}, 0) as "uploadedFiles"`;

/** The largest share of a quota that is used; null without one. A quota of 0 has no share. */
const SHARE = `greatest(u.stored_bytes / nullif(cast(p.stored_bytes_quota as float8), 0),
  ${today('uploaded_files')} / nullif(cast(p.upload_files_per_day as float8), 0),
  ${today('uploaded_bytes')} / nullif(cast(p.upload_bytes_per_day as float8), 0))`;

type UsageRow = Record<keyof TenantUsage, string>;

function usageOf(row: UsageRow | undefined): TenantUsage {
  const { storedBytes = 0, storedFiles = 0, uploadedBytes = 0, uploadedFiles = 0 } = row ?? {};
  return {
    storedBytes: Number(storedBytes),
    storedFiles: Number(storedFiles),
    uploadedBytes: Number(uploadedBytes),
    uploadedFiles: Number(uploadedFiles),
  };
}

/** Of one tenant; triggers and uploads keep it, so that it costs no count. */
export async function readTenantUsage(database: Database, tenantId: string): Promise<TenantUsage> {
  const text = `select ${USAGE} from tenant_usage u where tenant_id = :tenantId`;
  const [row] = await query<UsageRow>(database, text, { tenantId });
  return usageOf(row);
}

export type UsageOfTenant = TenantUsage & {
  userId: string;
  businessName: string;
  storedBytesQuota: number | null;
  uploadFilesPerDay: number | null;
  uploadBytesPerDay: number | null;
  share: number | null;
};

/** Those nearest to a quota first, then those that store most. */
export async function listTenantUsage(database: Database, limit: number): Promise<UsageOfTenant[]> {
  const rows = await query<
    UsageRow & {
      [name in 'storedBytesQuota' | 'uploadFilesPerDay' | 'uploadBytesPerDay']: string | null;
    } & Pick<UsageOfTenant, 'userId' | 'businessName' | 'share'>
  >(
    database,
    `select t.id as "userId", t.business_name as "businessName", ${USAGE}, ${SHARE} as share,
            p.stored_bytes_quota as "storedBytesQuota", p.upload_files_per_day as "uploadFilesPerDay",
            p.upload_bytes_per_day as "uploadBytesPerDay"
       from tenants t left join tenant_usage u on u.tenant_id = t.id left join tenant_policies p on p.tenant_id = t.id
      order by share desc nulls last, "storedBytes" desc, t.id limit :limit`,
    { limit },
  );
  const quota = (text: string | null) => (text === null ? null : Number(text));
  return rows.map(({ userId, businessName, share, ...row }) => ({
    userId,
    businessName,
    ...usageOf(row),
    share,
    storedBytesQuota: quota(row.storedBytesQuota),
    uploadFilesPerDay: quota(row.uploadFilesPerDay),
    uploadBytesPerDay: quota(row.uploadBytesPerDay),
  }));
}

/** The largest share of a quota that any tenant has used; 0 when no tenant has one. */
export async function readQuotaUse(database: Database): Promise<number> {
  const share = await queryValue<number>(
    database,
    `select max(${SHARE}) from tenant_policies p join tenant_usage u on u.tenant_id = p.tenant_id`,
  );
  return share ?? 0;
}
