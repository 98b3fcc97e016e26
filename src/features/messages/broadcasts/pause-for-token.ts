import type { Database } from '../../../platform/postgres/database.ts';
import { broadcastOfMessage } from '../send/broadcast-messages.ts';
import { pauseItself } from './switch-broadcast.ts';

const REASON = 'The access token of the WABA is missing or refused by upstream. No message was lost.';

/**
 * A refused access token is not the fault of a message: its broadcast pauses, and the message waits with it instead of failing. False: it is of no
 * broadcast, or of one that has ended. `of`: the broadcast as the message left; one that was resumed since goes on.
 */
export async function pausedForToken(
  database: Database,
  { wabaId, messageId }: { wabaId: string; messageId: string },
  of?: { runningSince: Date | null },
): Promise<boolean> {
  const broadcastId = await broadcastOfMessage(database, messageId);
  return broadcastId !== null && (await pauseItself(database, { wabaId, broadcastId }, REASON, of));
}
