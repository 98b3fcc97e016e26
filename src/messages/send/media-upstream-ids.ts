import type { Database } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';

/** A file of ours for one phone number: upstream's ids are the number's own. */
export type MediaOfNumber = { uuid: string; phoneNumberId: string };

/** Upstream keeps an upload for 30 days. */
const UPSTREAM_KEEPS_DAYS = 29;

/** Upstream's ids of those of these files that it has for the number, by our uuid. */
export async function knownUpstreamMedia(
  database: Database,
  phoneNumberId: string,
  uuids: readonly string[],
): Promise<Map<string, string>> {
  const rows = await query<{ uuid: string; upstreamMediaId: string }>(
    database,
    `select media_id as uuid, upstream_media_id as "upstreamMediaId" from media_upstream_ids
      where media_id = any (?::uuid[]) and phone_number_id = ? and upstream_media_id is not null
        and expires_at > now()`,
    [uuids, phoneNumberId],
  );
  return new Map(rows.map(({ uuid, upstreamMediaId }) => [uuid, upstreamMediaId]));
}

/** Makes the caller the one who gives the file to upstream, for `leaseMs`; false: somebody else is, or it is there. */
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
        and (m.uploading_until is null or m.uploading_until <= clock_timestamp())`,
    { uuid, phoneNumberId, leaseMs },
  );
  return claimed === 1;
}

/** Keeps what upstream called the file, for every later message of the number. */
export async function saveUpstreamMedia(
  database: Database,
  { uuid, phoneNumberId }: MediaOfNumber,
  upstreamMediaId: string,
): Promise<void> {
  await execute(
    database,
    `update media_upstream_ids
        set upstream_media_id = ?, expires_at = now() + ? * interval '1 day', uploading_until = null
      where media_id = ? and phone_number_id = ?`,
    [upstreamMediaId, UPSTREAM_KEEPS_DAYS, uuid, phoneNumberId],
  );
}

/** Forgets upstream's ids of these files for the number, also of one under way: the next message gives them anew. */
export async function forgetUpstreamMedia(
  database: Database,
  phoneNumberId: string,
  uuids: readonly string[],
): Promise<void> {
  await execute(
    database,
    'delete from media_upstream_ids where media_id = any (?::uuid[]) and phone_number_id = ?',
    [uuids, phoneNumberId],
  );
}
