import type { Database } from '../../../platform/postgres/database.ts';
import { pathFor } from '../send/marketing-path.ts';
import { type Pass, type PassEnd, type PassTools, sendInPass } from '../send/send-pass.ts';
import { lookAtTemplate } from '../send/sent-template.ts';
import { messageTo } from './broadcast-message.ts';
import type { PendingRecipient } from './broadcast-recipients.ts';
import type { Broadcast } from './broadcast-store.ts';
import { type BroadcastPath, queueRecipients } from './queue-recipients.ts';

/** Gives recipients their messages, some at a time, and sends them in a pass. */
export async function sendToRecipients(
  tools: PassTools,
  broadcast: Broadcast,
  recipients: readonly PendingRecipient[],
  pass: Pass & { perSecond: number },
): Promise<PassEnd> {
  const [first] = recipients;
  if (first === undefined) return 'through';
  const { database } = tools;
  const path = await pathOf(database, broadcast, first);
  const queue = (some: readonly PendingRecipient[]) => queueRecipients(database, broadcast, some, path);
  return await sendInPass(tools, broadcast, recipients, queue, pass);
}

/** A category that is not known is looked up at the message's turn. */
async function pathOf(
  database: Database,
  broadcast: Broadcast,
  recipient: PendingRecipient,
): Promise<BroadcastPath> {
  const message = messageTo(broadcast, recipient);
  const { category = null } = await lookAtTemplate(database, broadcast.wabaId, message);
  return { category, upstreamPath: await pathFor(database, broadcast.phoneNumberId, category) };
}
