import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

/** The media of a message; all null when it has none. */
export type MessageMedia = {
  mediaState: 'pending' | 'stored' | 'failed' | null;
  mediaType: string | null;
  mimeType: string | null;
  caption: string | null;
  fileName: string | null;
  objectKey: string | null;
  sizeBytes: string | null;
  sha256: string | null;
  errorCode: string | null;
  errorMessage: string | null;
};

/** The select list of MessageMedia, from the table `media` under this alias. */
export function mediaColumns(alias: string): string {
  return `${alias}.state as "mediaState", ${alias}.media_type as "mediaType",
    coalesce(${alias}.mime_type, ${alias}.served_type) as "mimeType", ${alias}.caption,
    ${alias}.file_name as "fileName", ${alias}.object_key as "objectKey", ${alias}.size_bytes as "sizeBytes",
    ${alias}.sha256, ${alias}.error_code as "errorCode", ${alias}.error_message as "errorMessage"`;
}

export type InboundMedia = MessageMedia & { id: string; upstreamId: string };

/** The media of an inbound message; null when the WABA has no such message or it carries no media. */
export async function findInboundMedia(
  database: Database,
  wabaId: string,
  messageId: string,
): Promise<InboundMedia | null> {
  const [row] = await query<InboundMedia>(
    database,
    `select m.id, coalesce(m.upstream_id, m.superseded_upstream_id) as "upstreamId", ${mediaColumns('d')}
       from messages m join media d on d.message_id = m.id and d.waba_id = m.waba_id
      where m.waba_id = ? and m.id = ? and m.direction = 'inbound'`,
    [wabaId, messageId],
  );
  return row ?? null;
}
