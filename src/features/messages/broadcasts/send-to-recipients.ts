import type { Database } from '../../../platform/postgres/database.ts';
import { pathFor } from '../send/marketing-path.ts';
import { RecipientOptedOut } from '../send/opted-out.ts';
import type { SendPath } from '../send/outbound-messages.ts';
import { queueMessage } from '../send/queue-message.ts';
import { type Pass, type PassEnd, type PassTools, sendInPass } from '../send/send-pass.ts';
import { lookAtTemplate } from '../send/sent-template.ts';
import { messageTo } from './broadcast-message.ts';
import { type PendingRecipient, suppressRecipient } from './broadcast-recipients.ts';
import type { Broadcast } from './broadcast-store.ts';

/** No API key sends them: the key that started the broadcast was judged then. */
const SENDER = { keyId: null, maxMessagesPerDay: null, recipients: 'any' } as const;

/** Gives recipients their messages, one after the other, and sends them in a pass. */
export async function sendToRecipients(
  tools: PassTools,
  broadcast: Broadcast,
  recipients: readonly PendingRecipient[],
  pass: Pass & { perSecond: number },
): Promise<PassEnd> {
  const [first] = recipients;
  if (first === undefined) return 'through';
  const how = await pathOf(tools.database, broadcast, first);
  const { wabaId } = broadcast;
  const { perSecond } = pass;
  const messageOf = (one: PendingRecipient) => queueOne(tools.database, broadcast, one, how);
  return await sendInPass(tools, { wabaId, perSecond }, recipients, messageOf, pass);
}

/** A category that is not known is looked up at the message's turn. */
async function pathOf(database: Database, broadcast: Broadcast, recipient: PendingRecipient) {
  const message = messageTo(broadcast, recipient);
  const { category = null } = await lookAtTemplate(database, broadcast.wabaId, message);
  return { category, upstreamPath: await pathFor(database, broadcast.phoneNumberId, category) };
}

/** Null: the recipient wants no message, or has one, or the broadcast does not run any more. */
async function queueOne(
  database: Database,
  broadcast: Broadcast,
  recipient: PendingRecipient,
  how: { category: string | null; upstreamPath: SendPath },
): Promise<string | null> {
  const key = { broadcastId: broadcast.id, recipientId: recipient.id };
  try {
    const account = { ...SENDER, wabaId: broadcast.wabaId };
    const message = messageTo(broadcast, recipient);
    return await queueMessage(database, account, message, { ...how, key: null, recipient: key });
  } catch (error) {
    if (!(error instanceof RecipientOptedOut)) throw error;
    await suppressRecipient(database, key);
    return null;
  }
}
