import { mediaReadyEventId } from '../../engine/deliveries/envelope.ts';
import { insertMedia, type MediaReference, storeMediaTask } from '../../features/messages/media/media.ts';
import { findMessageIds, messageKey } from '../../features/messages/messages.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { insertWorkflowTasks } from '../../platform/temporal/workflow-tasks.ts';

type WithFile = {
  wabaId: string;
  phoneNumberId: string;
  upstreamId: string;
  media: MediaReference | null;
};

/** Files of history are begun one after the other, so that those that come now find free slots. */
export const FILE_EVERY_MS = 500;

/**
 * Has the files of messages of the WhatsApp Business app fetched, as those of inbound messages are; returns how many.
 * `startMs`: in how long the first is begun, each further one `FILE_EVERY_MS` later; null: all at once.
 */
export async function saveAppMedia(
  trx: Transaction,
  messages: readonly WithFile[],
  startMs: number | null = null,
): Promise<number> {
  const withFile = messages.flatMap(({ media, ...message }) =>
    media === null ? [] : [{ ...message, media }],
  );
  if (withFile.length === 0) return 0;
  const ids = await findMessageIds(trx, withFile, 'app');
  const rows = withFile.flatMap(({ wabaId, phoneNumberId, upstreamId, media }) => {
    const messageId = ids.get(messageKey(phoneNumberId, upstreamId));
    return messageId === undefined ? [] : [{ wabaId, messageId, upstreamId, ...media }];
  });
  const files = [...new Map(rows.map((row) => [row.messageId, row])).values()];
  await insertMedia(trx, files);
  const tasks = files.map(({ wabaId, messageId, upstreamId }) =>
    storeMediaTask({ wabaId, messageId, eventId: mediaReadyEventId(upstreamId) }),
  );
  if (startMs === null) {
    await insertWorkflowTasks(trx, tasks);
  } else {
    for (const [index, task] of tasks.entries()) {
      await insertWorkflowTasks(trx, [task], startMs + index * FILE_EVERY_MS);
    }
  }
  return files.length;
}
