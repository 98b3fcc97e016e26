import type { Database } from '../../../platform/postgres/database.ts';
import { queryOne } from '../../../platform/postgres/sql.ts';

export type ReceivedMedia = {
  state: 'pending' | 'stored' | 'failed' | 'expired';
  /** The others are null until it is stored. */
  objectKey: string | null;
  mimeType: string | null;
  sizeBytes: number | null;
  /** Hexadecimal. */
  sha256: string | null;
};

export async function findReceivedMedia(
  database: Database,
  wabaId: string,
  upstreamMediaId: string,
): Promise<ReceivedMedia | null> {
  return await queryOne<ReceivedMedia>(
    database,
    `select state, object_key as "objectKey", coalesce(mime_type, served_type) as "mimeType",
            cast(size_bytes as float8) as "sizeBytes", sha256
       from media where waba_id = :wabaId and upstream_media_id = :upstreamMediaId
      order by state = 'stored' desc, message_id desc limit 1`,
    { wabaId, upstreamMediaId },
  );
}
