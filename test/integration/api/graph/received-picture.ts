import type { Database } from '../../../../src/platform/postgres/database.ts';
import { queryOne } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { fixtureBodyTo } from '../../../support/upstream-fixtures.ts';

/** Upstream's ids of the message and of its picture, and the key of the object in the store. */
export type ReceivedPicture = { message: string; media: string; objectKey: string };

/** A picture of 5 bytes that a customer sent to a tenant, noted as stored; nothing is in the store. */
export async function receivedPicture(
  database: Database,
  tenant: { wabaId: string; number: string },
): Promise<ReceivedPicture> {
  await takeIn(database, fixtureBodyTo(tenant, 'in_image_caption_url'));
  const picture = await queryOne<ReceivedPicture>(
    database,
    `update media a set state = 'stored', object_key = 'picture-' || m.id, served_type = 'image/jpeg', size_bytes = 5,
            sha256 = 'ab'
       from messages m where m.id = a.message_id and m.waba_id = :wabaId
     returning m.upstream_id as message, a.upstream_media_id as media, a.object_key as "objectKey"`,
    { wabaId: tenant.wabaId },
  );
  if (picture === null) throw new Error('the picture is missing');
  return picture;
}
