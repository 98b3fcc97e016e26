import type { Logger } from '../../../platform/logger.ts';
import type { ObjectStore } from '../../../platform/object-store/object-store.ts';
import { ObjectStoreUnavailable } from '../../../platform/object-store/store-errors.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { execute, query, queryValue } from '../../../platform/postgres/sql.ts';
import { RateLimitError } from '../../../platform/request-input.ts';
import { checkStorageQuota } from '../media/media.ts';
import type { MediaKind } from './uploaded-media.ts';

export type MediaUpload = {
  uuid: string;
  objectKey: string;
  mediaType: MediaKind;
  mimeType: string;
  fileName: string | null;
  sizeBytes: number;
  /** Hexadecimal. */
  sha256: string;
  createdAt: Date;
  expiresAt: Date;
  isExpired: boolean;
};

const KEPT_DAYS = 30;

/** The row comes before the bytes, so that they are found when nothing comes of them. */
export async function beginMediaUpload(
  database: Database,
  wabaId: string,
  { uuid, objectKey, apiKeyId }: { uuid: string; objectKey: string; apiKeyId: string },
): Promise<void> {
  await execute(
    database,
    `insert into media_uploads (id, waba_id, object_key, api_key_id, expires_at)
     values (:uuid, :wabaId, :objectKey, :apiKeyId, now() + :keptDays * interval '1 day')`,
    { uuid, wabaId, objectKey, apiKeyId, keptDays: KEPT_DAYS },
  );
}

export type UploadedFile = Pick<MediaUpload, 'mediaType' | 'mimeType' | 'fileName' | 'sizeBytes' | 'sha256'>;

/** Throws StorageQuotaExceeded or RateLimitError `upload_quota_exceeded`, and then nothing has changed. */
export async function finishMediaUpload(
  database: Database,
  wabaId: string,
  uuid: string,
  stored: UploadedFile,
): Promise<void> {
  await database.transaction(async (trx) => {
    await markReady(trx, wabaId, uuid, stored);
    // A trigger has counted the file as stored, so the row is there, and locked.
    await execute(
      trx,
      `update tenant_usage u
          set uploaded_files = case when upload_day = ${TODAY} then uploaded_files else 0 end + 1,
              uploaded_bytes = case when upload_day = ${TODAY} then uploaded_bytes else 0 end + :sizeBytes,
              upload_day = ${TODAY}
         from wabas w where w.waba_id = :wabaId and u.tenant_id = w.tenant_id`,
      { wabaId, sizeBytes: stored.sizeBytes },
    );
    await checkUploadQuota(trx, wabaId);
  });
}

const TODAY = `(now() at time zone 'utc')::date`;
const DAY_MS = 86_400_000;

/** Throws as `finishMediaUpload`; with `adding` of 1, when not one byte or file more fits. */
export async function checkUploadQuota(database: Database, wabaId: string, adding: 0 | 1 = 0): Promise<void> {
  await checkStorageQuota(database, wabaId, adding);
  const [row] = await query<{ name: string; quota: string; used: string }>(
    database,
    `select q.name, q.quota, q.used
       from wabas w join tenant_policies p on p.tenant_id = w.tenant_id
       join tenant_usage u on u.tenant_id = w.tenant_id and u.upload_day = ${TODAY},
            lateral (values ('files', p.upload_files_per_day, u.uploaded_files),
                            ('bytes', p.upload_bytes_per_day, u.uploaded_bytes)) as q (name, quota, used)
      where w.waba_id = :wabaId and q.used + :adding > q.quota limit 1`,
    { wabaId, adding },
  );
  if (row === undefined) return;
  const message = `The business has a quota of ${row.quota} uploaded ${row.name} per UTC day.`;
  throw new RateLimitError(message, DAY_MS - (Date.now() % DAY_MS), 'upload_quota_exceeded');
}

async function markReady(
  trx: Transaction,
  wabaId: string,
  uuid: string,
  stored: UploadedFile,
): Promise<void> {
  const changed = await execute(
    trx,
    `update media_uploads
        set state = 'ready', media_type = :mediaType, mime_type = :mimeType, file_name = :fileName,
            size_bytes = :sizeBytes, sha256 = :sha256
      where id = :uuid and waba_id = :wabaId and state = 'uploading'`,
    { uuid, wabaId, ...stored },
  );
  if (changed === 0) throw new Error('the upload took so long that it was given up');
}

/** Also those that have expired and are not removed yet. */
export async function findMediaUploads(
  database: Database,
  wabaId: string,
  uuids: readonly string[],
): Promise<MediaUpload[]> {
  return await query<MediaUpload>(
    database,
    `select id as uuid, object_key as "objectKey", media_type as "mediaType", mime_type as "mimeType",
            file_name as "fileName", cast(size_bytes as float8) as "sizeBytes", sha256, created_at as "createdAt",
            expires_at as "expiresAt", expires_at <= now() as "isExpired"
       from media_uploads where id = any (:uuids::uuid[]) and waba_id = :wabaId and state = 'ready'`,
    { uuids, wabaId },
  );
}

/** The file cannot be sent any more, and its bytes may be removed. Returns where they are; null: no such file. */
export async function deleteMediaUpload(
  database: Database,
  wabaId: string,
  uuid: string,
): Promise<string | null> {
  return await queryValue<string>(
    database,
    `update media_uploads set state = 'deleted' where id = :uuid and waba_id = :wabaId and state = 'ready'
     returning object_key as "objectKey"`,
    { uuid, wabaId },
  );
}

export async function forgetMediaUpload(database: Database, uuid: string): Promise<void> {
  await execute(database, 'delete from media_uploads where id = :uuid', { uuid });
}

type MediaOfNumber = { uuid: string; phoneNumberId: string };

/** Upstream keeps an upload for 30 days. */
const UPSTREAM_KEEPS_DAYS = 29;

export async function knownUpstreamMedia(
  database: Database,
  phoneNumberId: string,
  uuids: readonly string[],
): Promise<Map<string, string>> {
  const rows = await query<{ uuid: string; upstreamMediaId: string }>(
    database,
    `select media_id as uuid, upstream_media_id as "upstreamMediaId" from media_upstream_ids
      where media_id = any (:uuids::uuid[]) and phone_number_id = :phoneNumberId and upstream_media_id is not null
        and expires_at > now()`,
    { uuids, phoneNumberId },
  );
  return new Map(rows.map(({ uuid, upstreamMediaId }) => [uuid, upstreamMediaId]));
}

/** The caller gives the file to upstream, for `leaseMs`; false: another does, or it is there. */
export async function claimUpstreamMedia(
  database: Database,
  { uuid, phoneNumberId }: MediaOfNumber,
  leaseMs: number,
): Promise<boolean> {
  const claimed = await execute(
    database,
    `insert into media_upstream_ids as m (media_id, phone_number_id, uploading_until)
     values (:uuid, :phoneNumberId, clock_timestamp() + :leaseMs * interval '1 millisecond')
     on conflict (media_id, phone_number_id) do update
        set uploading_until = excluded.uploading_until, upstream_media_id = null
      where (m.upstream_media_id is null or m.expires_at <= now())
        and (m.uploading_until is null or m.uploading_until <= (select clock_timestamp()))`,
    { uuid, phoneNumberId, leaseMs },
  );
  return claimed === 1;
}

export async function saveUpstreamMedia(
  database: Database,
  { uuid, phoneNumberId }: MediaOfNumber,
  upstreamMediaId: string,
): Promise<void> {
  await execute(
    database,
    `update media_upstream_ids
        set upstream_media_id = :upstreamMediaId, expires_at = now() + :upstreamKeepsDays * interval '1 day', uploading_until = null
      where media_id = :uuid and phone_number_id = :phoneNumberId`,
    { upstreamMediaId, upstreamKeepsDays: UPSTREAM_KEEPS_DAYS, uuid, phoneNumberId },
  );
}

/** Also of one under way: the next message gives them again. */
export async function forgetUpstreamMedia(
  database: Database,
  phoneNumberId: string,
  uuids: readonly string[],
): Promise<void> {
  await execute(
    database,
    'delete from media_upstream_ids where media_id = any (:uuids::uuid[]) and phone_number_id = :phoneNumberId',
    { uuids, phoneNumberId },
  );
}

const BATCH = 200;

/** Messages that waited when their file expired may still go out for a day. */
const GRACE_DAYS = 1;
/** Far longer than any upload may take. */
const LOST_AFTER_HOURS = 1;

/** After so many the store is taken to be away: asking it for every file would take hours. */
const FAILURES_IN_A_ROW = 5;

/**
 * Bytes first, then the row. A file whose bytes cannot be removed stays until the next time and holds up no other. Returns how many could
 * not be removed.
 */
export async function removeSpentUploads(tools: {
  database: Database;
  objectStore: Pick<ObjectStore, 'remove'>;
  logger: Logger;
  /** Once it is aborted, the rest is left for the next time. */
  ending?: AbortSignal;
}): Promise<number> {
  const { database, objectStore, logger, ending } = tools;
  let failures = 0;
  let inARow = 0;
  let lastError: ObjectStoreUnavailable | null = null;
  for await (const { uuid, objectKey } of spentUploads(database)) {
    if (ending?.aborted) break;
    const error = await removeBytes(objectStore, objectKey);
    if (error === null) {
      await forgetMediaUpload(database, uuid);
      inARow = 0;
      continue;
    }
    lastError = error;
    failures += 1;
    inARow += 1;
    if (inARow === FAILURES_IN_A_ROW) break;
  }
  if (lastError !== null) {
    logger.warn({ err: lastError, failures }, 'expired uploads could not be removed; retrying later');
  }
  return failures;
}

type SpentUpload = { uuid: string; objectKey: string };

/** Expired, deleted, or lost on their way, of all WABAs. */
async function* spentUploads(database: Database): AsyncGenerator<SpentUpload> {
  for (let after: string | null = null; ; ) {
    const page: SpentUpload[] = await query(
      database,
      `select id as uuid, object_key as "objectKey" from media_uploads
        where (state = 'deleted'
               or (state = 'uploading' and created_at < now() - interval '${LOST_AFTER_HOURS} hours')
               or expires_at < now() - interval '${GRACE_DAYS} days')
          and (cast(:after as uuid) is null or id > cast(:after as uuid))
        order by id limit ${BATCH}`,
      { after },
    );
    yield* page;
    if (page.length < BATCH) return;
    after = page.at(-1)?.uuid ?? null;
  }
}

async function removeBytes(
  objectStore: Pick<ObjectStore, 'remove'>,
  objectKey: string,
): Promise<ObjectStoreUnavailable | null> {
  try {
    await objectStore.remove(objectKey);
    return null;
  } catch (error) {
    if (error instanceof ObjectStoreUnavailable) return error;
    throw error;
  }
}
