import type { SealedDatabase } from '../../../platform/crypto/sealed-database.ts';
import { usableToken } from '../../accounts/access-tokens.ts';
import { broadcastOfMessage } from '../send/broadcast-messages.ts';
import { findBroadcast } from './broadcast-store.ts';
import { pauseItself } from './switch-broadcast.ts';

const REASON = 'The access token of the WABA is missing or refused by upstream. No message was lost.';

/**
 * A refused access token is not the fault of a message: its broadcast pauses, and the message waits with it instead of failing. False: it is of no
 * broadcast, or of one that has ended. `token`: the one that was refused; null: there was none. `of`: the broadcast as the message left. One that was
 * resumed since, or whose WABA has another token since, goes on.
 */
export async function pausedForToken(
  tools: SealedDatabase,
  { wabaId, messageId }: { wabaId: string; messageId: string },
  { token, of }: { token: string | null; of: { runningSince: Date | null } | null },
): Promise<boolean> {
  const { database } = tools;
  const broadcastId = await broadcastOfMessage(database, messageId);
  if (broadcastId === null) return false;
  const ids = { wabaId, broadcastId };
  const ran = of ?? (await findBroadcast(database, ids));
  if (ran !== null && (await usableToken(tools, wabaId)) !== token) return true;
  return await pauseItself(database, ids, REASON, ran ?? undefined);
}
