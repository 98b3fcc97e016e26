import { columnsOf } from '../../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { execute, hasRow, query, queryColumn, queryOne, queryValue } from '../../../platform/postgres/sql.ts';
import { RequestError } from '../../../platform/request-input.ts';
import type { TaskKind, WorkflowTask } from '../../../platform/temporal/workflow-tasks.ts';

export type MediaReference = {
  /** The message type that carries it: image, video, audio, document, sticker, voice or one of the future. */
  mediaType: string;
  upstreamMediaId: string | null;
  upstreamError: string | null;
  mimeType: string | null;
  /** As upstream gives it: base64 in webhooks, hexadecimal in lookups. */
  sha256: string | null;
  /** Short-lived address that needs our access token. */
  url: string | null;
  caption: string | null;
  fileName: string | null;
};

export type NewMedia = MediaReference & { wabaId: string; messageId: string };

export const STORE_INBOUND_MEDIA: TaskKind = {
  workflowType: 'storeInboundMedia',
  summary: 'fetch inbound media into the object store',
  eventType: 'media.ready',
};

type AnnouncedMedia = { wabaId: string; messageId: string; eventId: string };

export function storeMediaTask({ wabaId, messageId, eventId }: AnnouncedMedia): WorkflowTask {
  const argument = { wabaId, messageId };
  return { workflowId: mediaWorkflowId(messageId), kind: STORE_INBOUND_MEDIA, wabaId, eventId, argument };
}

export function mediaWorkflowId(messageId: string): string {
  return `media/${messageId}`;
}

/** Media that upstream never had is stored as failed. */
export async function insertMedia(trx: Transaction, media: readonly NewMedia[]): Promise<void> {
  if (media.length === 0) return;
  await execute(
    trx,
    `insert into media (waba_id, message_id, media_type, upstream_media_id, mime_type, expected_sha256, upstream_url,
                        caption, file_name, error_message, state, error_code, finished_at)
     select *, case when u.id is null then 'failed' else 'pending' end,
            case when u.id is null then '${NEVER_HAD}' end, case when u.id is null then now() end
       from unnest(:wabaId::text[], :messageId::bigint[], :mediaType::text[], :upstreamMediaId::text[], :mimeType::text[], :sha256::text[], :url::text[], :caption::text[], :fileName::text[],
                   :upstreamErrors::text[]) as u (waba_id, message_id, type, id)
     on conflict (message_id) do nothing`,
    {
      ...columnsOf(
        media,
        'wabaId',
        'messageId',
        'mediaType',
        'upstreamMediaId',
        'mimeType',
        'sha256',
        'url',
        'caption',
        'fileName',
      ),
      upstreamErrors: media.map((m) => (m.upstreamMediaId === null ? neverHadText(m.upstreamError) : null)),
    },
  );
}

const NEVER_HAD = 'media_unavailable';

function neverHadText(upstreamError: string | null): string {
  const text = 'The upstream platform could not take this media from the customer';
  return upstreamError === null ? `${text}.` : `${text}: ${upstreamError}`;
}

export type PendingMedia = {
  mediaType: string;
  upstreamMediaId: string;
  mimeType: string | null;
  expectedSha256: string | null;
  upstreamUrl: string | null;
  caption: string | null;
  /** Where its bytes go, the same for every attempt; nothing is served from there while the media is pending. */
  objectKey: string;
  ageMs: number;
};

/**
 * The key of its object is that of an earlier attempt, if there was one. Null: there is nothing to fetch, because it is stored, has failed,
 * or there is none.
 */
export async function takePendingMedia(
  database: Database,
  media: { wabaId: string; messageId: string; objectKey: string },
): Promise<PendingMedia | null> {
  return await queryOne<PendingMedia>(
    database,
    `update media set object_key = coalesce(object_key, :objectKey)
      where message_id = :messageId and waba_id = :wabaId and state = 'pending'
     returning media_type as "mediaType", upstream_media_id as "upstreamMediaId", mime_type as "mimeType",
               expected_sha256 as "expectedSha256", upstream_url as "upstreamUrl", caption,
               object_key as "objectKey",
               (extract(epoch from now() - created_at) * 1000)::double precision as "ageMs"`,
    media,
  );
}

export async function hasMedia(database: Database, wabaId: string, messageId: string): Promise<boolean> {
  const text = 'select 1 from media where message_id = :messageId and waba_id = :wabaId';
  return await hasRow(database, text, { messageId, wabaId });
}

export async function isMediaStored(database: Database, messageId: string): Promise<boolean> {
  const text = `select 1 from media where message_id = :messageId and state = 'stored'`;
  return await hasRow(database, text, { messageId });
}

/** The WABA's media that was stored last and that upstream still keeps, by upstream's id. */
export async function findReadableMedia(
  database: Database,
  wabaId: string,
  exceptMessageId: string,
): Promise<string | null> {
  return await queryValue<string>(
    database,
    `select upstream_media_id as id from media
      where waba_id = :wabaId and state = 'stored' and finished_at > now() - interval '6 days'
        and created_at > now() - interval '6 days' and message_id <> :exceptMessageId and upstream_media_id is not null
      order by finished_at desc limit 1`,
    { wabaId, exceptMessageId },
  );
}

export async function findErasedKeys(database: Database, objectKeys: readonly string[]): Promise<string[]> {
  if (objectKeys.length === 0) return [];
  return await queryColumn<string>(
    database,
    'select object_key from erased_files where object_key = any (cast(:objectKeys as text[]))',
    { objectKeys },
  );
}

export async function isFileErased(database: Database, wabaId: string, messageId: string): Promise<boolean> {
  const text = 'select 1 from erased_files where waba_id = :wabaId and message_id = :messageId';
  return await hasRow(database, text, { wabaId, messageId });
}

/** As the head of its event says. */
export type MediaOwner = {
  tenantId: string;
  phoneNumberId: string;
  conversationId: string;
  upstreamId: string;
  mimeType: string;
  /** Of the WhatsApp Business app: no event reports its file. */
  isOfApp: boolean;
  /** It had been stored and announced before its file was lost. */
  wasStored: boolean;
};

/** Returns the message; null when the media had ended before. `mimeType` is kept only when the message said none. */
export async function markMediaStored(
  trx: Transaction,
  wabaId: string,
  messageId: string,
  stored: { objectKey: string; servedType: string; sizeBytes: number; sha256: string; mimeType: string },
): Promise<MediaOwner | null> {
  return await queryOne<MediaOwner>(
    trx,
    `with pending as (
       select message_id, sha256 is not null as was_stored from media
        where message_id = :messageId and waba_id = :wabaId and state = 'pending' for update)
     update media
        set state = 'stored', object_key = :objectKey, served_type = :servedType, size_bytes = :sizeBytes,
            sha256 = :sha256, mime_type = coalesce(media.mime_type, :mimeType), finished_at = now()
       from pending join messages m on m.id = pending.message_id join wabas w on w.waba_id = m.waba_id
      where media.message_id = pending.message_id
     returning w.tenant_id as "tenantId", m.phone_number_id as "phoneNumberId",
               m.conversation_id as "conversationId",
               coalesce(m.upstream_id, m.superseded_upstream_id) as "upstreamId", media.mime_type as "mimeType",
               m.origin is not null as "isOfApp", pending.was_stored as "wasStored"`,
    { wabaId, messageId, ...stored },
  );
}

/** Tenants see code and text. Returns the key under which an object may have been left; null when there is none, or the media had ended before. */
export async function markMediaFailed(
  trx: Transaction,
  wabaId: string,
  messageId: string,
  error: { code: string; message: string },
): Promise<string | null> {
  return await queryValue<string>(
    trx,
    `with pending as (
       select message_id, object_key from media
        where message_id = :messageId and waba_id = :wabaId and state = 'pending' for update)
     update media
        set state = 'failed', object_key = null, error_code = :code, error_message = :message, finished_at = now()
       from pending where media.message_id = pending.message_id
     returning pending.object_key as "objectKey"`,
    { wabaId, messageId, ...error },
  );
}

export type ServedMedia = {
  objectKey: string;
  servedType: string;
  sizeBytes: number;
  /** Hexadecimal. */
  sha256: string;
  fileName: string | null;
  mediaType: string;
  messageId: string;
  tenantId: string;
  /** For how long the tenant wants addresses to be good; null: as the installation does. */
  tenantTtlSeconds: number | null;
};

/** No owner is asked for: who knows the key may read the file. */
export async function findServedMedia(
  database: Database,
  objectKeys: readonly string[],
): Promise<ServedMedia[]> {
  return await query<ServedMedia>(
    database,
    `select object_key as "objectKey", served_type as "servedType", cast(size_bytes as float8) as "sizeBytes", sha256,
            file_name as "fileName", media_type as "mediaType", message_id as "messageId",
            (select w.tenant_id from wabas w where w.waba_id = media.waba_id) as "tenantId",
            (select p.media_url_ttl_seconds from wabas w join tenant_policies p on p.tenant_id = w.tenant_id
              where w.waba_id = media.waba_id) as "tenantTtlSeconds"
       from media where object_key = any (cast(:objectKeys as text[])) and state = 'stored'`,
    { objectKeys },
  );
}

export class StorageQuotaExceeded extends RequestError {
  constructor(quotaBytes: number) {
    super(
      'storage_quota_exceeded',
      `The stored files of the business have reached their quota of ${quotaBytes} bytes.`,
    );
    this.name = 'StorageQuotaExceeded';
  }
}

/** Throws StorageQuotaExceeded; `addingBytes` are counted. */
export async function checkStorageQuota(database: Database, wabaId: string, addingBytes = 0): Promise<void> {
  const [row] = await query<{ quota: string; stored: string | null }>(
    database,
    `select p.stored_bytes_quota as quota, u.stored_bytes as stored
       from wabas w join tenant_policies p on p.tenant_id = w.tenant_id
       left join tenant_usage u on u.tenant_id = w.tenant_id
      where w.waba_id = :wabaId and p.stored_bytes_quota is not null`,
    { wabaId },
  );
  if (row === undefined) return;
  const quotaBytes = Number(row.quota);
  if (Number(row.stored) + addingBytes > quotaBytes) throw new StorageQuotaExceeded(quotaBytes);
}
