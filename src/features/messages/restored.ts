import { mediaReadyEventId } from '../../engine/deliveries/envelope.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { execute, query, queryColumn } from '../../platform/postgres/sql.ts';
import { insertWorkflowTasks } from '../../platform/temporal/workflow-tasks.ts';
import { broadcastWorkflowId } from './broadcasts/broadcast-store.ts';
import { markMediaFailed, storeMediaTask } from './media/media.ts';
import { MEDIA_ERROR_MESSAGES } from './media/media-verdict.ts';
import { deleteMediaUpload } from './send/media-uploads.ts';
import { recordUnknown, type SendMessageInput } from './send/record-send.ts';

export type StoredFile = { id: string; wabaId: string; objectKey: string; sizeBytes: string };

export async function listStoredMedia(
  database: Database,
  after: string,
  limit: number,
): Promise<StoredFile[]> {
  return await query<StoredFile>(
    database,
    `select message_id as id, waba_id as "wabaId", object_key as "objectKey", size_bytes as "sizeBytes" from media
      where message_id > cast(:after as bigint) and state = 'stored' and object_key is not null
      order by message_id limit :limit`,
    { after, limit },
  );
}

export async function listReadyUploads(
  database: Database,
  after: string,
  limit: number,
): Promise<StoredFile[]> {
  return await query<StoredFile>(
    database,
    `select id, waba_id as "wabaId", object_key as "objectKey", size_bytes as "sizeBytes" from media_uploads
      where id > cast(:after as uuid) and state = 'ready' and expires_at > now() order by id limit :limit`,
    { after, limit },
  );
}

export async function findNamedKeys(database: Database, keys: readonly string[]): Promise<Set<string>> {
  const named = await queryColumn<string>(
    database,
    `select object_key from media where object_key = any (cast(:keys as text[]))
     union all select object_key from media_uploads where object_key = any (cast(:keys as text[]))`,
    { keys },
  );
  return new Set(named);
}

/** For so long upstream takes its own ids of media. */
const REFETCH_DAYS = 30;

/** The file keeps its address, and ends as lost when upstream no longer has it. Null: it is not stored as it was. */
export async function replaceLostMedia(
  database: Database,
  { id: messageId, wabaId, objectKey }: StoredFile,
): Promise<'asked' | 'lost' | null> {
  return await database.transaction(async (trx) => {
    const [row] = await query<{ isThere: boolean; upstreamId: string }>(
      trx,
      `update media set state = 'pending', finished_at = null
        where message_id = :messageId and waba_id = :wabaId and state = 'stored' and object_key = :objectKey
       returning upstream_media_id is not null and created_at > now() - interval '${REFETCH_DAYS} days' as "isThere",
                 (select coalesce(m.upstream_id, m.superseded_upstream_id, '') from messages m
                   where m.id = media.message_id) as "upstreamId"`,
      { messageId, wabaId, objectKey },
    );
    if (row === undefined) return null;
    if (!row.isThere) {
      const message = MEDIA_ERROR_MESSAGES.media_lost;
      await markMediaFailed(trx, wabaId, messageId, { code: 'media_lost', message });
      return 'lost';
    }
    const eventId = mediaReadyEventId(row.upstreamId);
    await insertWorkflowTasks(trx, [storeMediaTask({ wabaId, messageId, eventId })]);
    return 'asked';
  });
}

/** Its bytes are lost: its tenant is asked to upload again. False: it is given up already. */
export async function giveUpUpload(database: Database, { id, wabaId }: StoredFile): Promise<boolean> {
  return (await deleteMediaUpload(database, wabaId, id)) !== null;
}

/** It was sent after the moment to which the database was restored, and must not go out twice. */
export async function endSentMessage(database: Database, input: SendMessageInput): Promise<void> {
  const message = 'The database was restored to a moment before this message was sent.';
  const error = { code: 'outcome_unknown' as const, message, upstream: null };
  await recordUnknown(database, input, error, ['queued', 'sending']);
}

/** Broadcasts of which recipients have no message. */
export async function listUnfinished(
  database: Database,
): Promise<{ broadcastId: string; wabaId: string; workflowId: string }[]> {
  return await query(
    database,
    `select id as "broadcastId", waba_id as "wabaId", '${broadcastWorkflowId('')}' || id as "workflowId" from broadcasts b
      where state in ('draft', 'scheduled', 'running', 'paused')
        and exists (select from broadcast_recipients r where r.broadcast_id = b.id and r.state = 'pending') order by id`,
  );
}

/** Which of these have no message. */
export async function pendingAmong(
  database: Database,
  broadcastId: string,
  recipientIds: readonly string[],
): Promise<Set<string>> {
  const pending = await queryColumn<string>(
    database,
    `select id from broadcast_recipients
      where broadcast_id = :broadcastId and id = any (cast(:recipientIds as bigint[])) and state = 'pending'`,
    { broadcastId, recipientIds },
  );
  return new Set(pending);
}

/** Those up to `upTo` that have no message. */
export async function pendingUpTo(database: Database, broadcastId: string, upTo: string): Promise<string[]> {
  return await queryColumn<string>(
    database,
    `select id from broadcast_recipients
      where broadcast_id = :broadcastId and id <= cast(:upTo as bigint) and state = 'pending' order by id`,
    { broadcastId, upTo },
  );
}

/** It had a message that the database does not know, after a restore: it gets no other. */
export async function noteForgottenMessage(
  database: Database,
  key: { broadcastId: string; recipientId: string },
): Promise<void> {
  await execute(
    database,
    `update broadcast_recipients set state = 'queued'
      where broadcast_id = :broadcastId and id = :recipientId and state = 'pending'`,
    key,
  );
}
