import type { Database } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import type { MediaKind } from './uploaded-media.ts';

/** A file of a tenant that can be sent. */
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

/** Notes that a file is on its way to the store, so that its bytes are found when nothing comes of it. */
export async function beginMediaUpload(
  database: Database,
  wabaId: string,
  { uuid, objectKey }: { uuid: string; objectKey: string },
): Promise<void> {
  await execute(
    database,
    `insert into media_uploads (id, waba_id, object_key, expires_at)
     values (?, ?, ?, now() + ? * interval '1 day')`,
    [uuid, wabaId, objectKey, KEPT_DAYS],
  );
}

type Stored = Pick<MediaUpload, 'mediaType' | 'mimeType' | 'fileName' | 'sizeBytes' | 'sha256'>;

/** Ends an upload: from now on the file can be sent. */
export async function finishMediaUpload(
  database: Database,
  wabaId: string,
  uuid: string,
  stored: Stored,
): Promise<void> {
  const changed = await execute(
    database,
    `update media_uploads
        set state = 'ready', media_type = :mediaType, mime_type = :mimeType, file_name = :fileName,
            size_bytes = :sizeBytes, sha256 = :sha256
      where id = :uuid and waba_id = :wabaId and state = 'uploading'`,
    { uuid, wabaId, ...stored },
  );
  if (changed === 0) throw new Error('the upload took so long that it was given up');
}

/** Those of these files that the WABA has, also when they have expired and are not removed yet. */
export async function findMediaUploads(
  database: Database,
  wabaId: string,
  uuids: readonly string[],
): Promise<MediaUpload[]> {
  const rows = await query<Omit<MediaUpload, 'sizeBytes'> & { sizeBytes: string }>(
    database,
    `select id as uuid, object_key as "objectKey", media_type as "mediaType", mime_type as "mimeType",
            file_name as "fileName", size_bytes as "sizeBytes", sha256, created_at as "createdAt",
            expires_at as "expiresAt", expires_at <= now() as "isExpired"
       from media_uploads where id = any (?::uuid[]) and waba_id = ? and state = 'ready'`,
    [uuids, wabaId],
  );
  return rows.map((row) => ({ ...row, sizeBytes: Number(row.sizeBytes) }));
}

/** Gives a file up: it cannot be sent any more, and its bytes may be removed. Returns where they are; null: no such file. */
export async function deleteMediaUpload(
  database: Database,
  wabaId: string,
  uuid: string,
): Promise<string | null> {
  const [row] = await query<{ objectKey: string }>(
    database,
    `update media_uploads set state = 'deleted' where id = ? and waba_id = ? and state = 'ready'
     returning object_key as "objectKey"`,
    [uuid, wabaId],
  );
  return row?.objectKey ?? null;
}

/** Forgets a file whose bytes are gone, or never were stored. */
export async function forgetMediaUpload(database: Database, uuid: string): Promise<void> {
  await execute(database, 'delete from media_uploads where id = ?', [uuid]);
}

/** Messages that waited when their file expired may still go out for a day. */
const GRACE_DAYS = 1;
/** Far longer than any upload may take. */
const LOST_AFTER_HOURS = 1;

/**
 * Files whose bytes are to be removed: expired, deleted, or lost on their way. For housekeeping, of all WABAs, a page by
 * their uuid; `after`: the last of the page before.
 */
export async function listSpentMediaUploads(
  database: Database,
  after: string | null,
  limit: number,
): Promise<{ uuid: string; objectKey: string }[]> {
  return await query(
    database,
    `select id as uuid, object_key as "objectKey" from media_uploads
      where (state = 'deleted'
             or (state = 'uploading' and created_at < now() - :lostHours * interval '1 hour')
             or expires_at < now() - :graceDays * interval '1 day')
        and (cast(:after as uuid) is null or id > cast(:after as uuid))
      order by id limit :limit`,
    { after, limit, lostHours: LOST_AFTER_HOURS, graceDays: GRACE_DAYS },
  );
}
