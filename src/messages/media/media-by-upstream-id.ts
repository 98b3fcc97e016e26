import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

export type ReceivedMedia = {
  state: 'pending' | 'stored' | 'failed' | 'expired';
  /** The others are null until it is stored. */
  objectKey: string | null;
  mimeType: string | null;
  sizeBytes: number | null;
  /** Hexadecimal. */
  sha256: string | null;
};

/** Null: the WABA was sent no such file. */
export async function findReceivedMedia(
  database: Database,
  wabaId: string,
  upstreamMediaId: string,
): Promise<ReceivedMedia | null> {
  const [row] = await query<Omit<ReceivedMedia, 'sizeBytes'> & { sizeBytes: string | null }>(
    database,
    `select state, object_key as "objectKey", coalesce(mime_type, served_type) as "mimeType",
            size_bytes as "sizeBytes", sha256
       from media where waba_id = ? and upstream_media_id = ?
      order by state = 'stored' desc, message_id desc limit 1`,
    [wabaId, upstreamMediaId],
  );
  if (row === undefined) return null;
  return { ...row, sizeBytes: row.sizeBytes === null ? null : Number(row.sizeBytes) };
}
