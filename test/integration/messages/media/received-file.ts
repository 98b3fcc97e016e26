import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { addConversation, addMessage } from '../../api/api-harness.ts';

/** Who sent the files. */
export const CUSTOMER = '12025550143';

/** A received file of a customer; returns the path of its URL. */
export async function addReceivedFile(
  { database, store }: { database: Database; store: ObjectStore },
  { wabaId, number, sizeBytes }: { wabaId: string; number: string; sizeBytes: number },
): Promise<string> {
  const objectKey = randomBytes(24).toString('base64url');
  const conversation = await addConversation(database, { wabaId, phoneNumberId: number, waId: CUSTOMER });
  const message = await addMessage(database, conversation, { wabaId, phoneNumberId: number, type: 'video' });
  await store.put(objectKey, Readable.from([Buffer.alloc(sizeBytes, 'x')]), { contentType: 'video/mp4' });
  await execute(
    database,
    `insert into media (message_id, waba_id, state, media_type, mime_type, object_key, served_type, size_bytes, sha256)
     values (:message, :wabaId, 'stored', 'video', 'video/mp4', :objectKey, 'video/mp4', :sizeBytes, :repeat)`,
    { message, wabaId, objectKey, sizeBytes, repeat: 'a'.repeat(64) },
  );
  return `/received_media/${objectKey}`;
}
