import type { Transaction } from './database.ts';
import { execute } from './sql.ts';

export type NewMedia = {
  wabaId: string;
  messageId: string;
  mediaType: string;
  upstreamMediaId: string;
  mimeType: string | null;
  sha256: string | null;
  url: string | null;
  caption: string | null;
  fileName: string | null;
};

/** Adds media that is to be fetched. */
export async function insertMedia(trx: Transaction, media: readonly NewMedia[]): Promise<void> {
  if (media.length === 0) return;
  await execute(
    trx,
    `insert into media (waba_id, message_id, media_type, upstream_media_id, mime_type, expected_sha256, upstream_url,
                        caption, file_name)
     select * from unnest(?::text[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[],
                          ?::text[])
     on conflict (message_id) do nothing`,
    [
      media.map((m) => m.wabaId),
      media.map((m) => m.messageId),
      media.map((m) => m.mediaType),
      media.map((m) => m.upstreamMediaId),
      media.map((m) => m.mimeType),
      media.map((m) => m.sha256),
      media.map((m) => m.url),
      media.map((m) => m.caption),
      media.map((m) => m.fileName),
    ],
  );
}
