import { shardOf } from '../inbound/inbox.ts';
import { countWaitingBodies, refuseWaitingBodies, releaseWaitingBodies } from '../inbound/waiting-bodies.ts';
import { recordChange, SYSTEM } from '../platform/audit/audit.ts';
import { type Database, lockIntake } from '../platform/postgres/database.ts';
import { finishAskedTask } from '../platform/temporal/workflow-tasks.ts';
import type { PhoneNumber } from './accounts.ts';
import {
  numbersWorkflowId,
  removeOtherNumbers,
  saveFollowedNumbers,
  saveNumbersProblem,
} from './followed-numbers.ts';

/** What following upstream's list changed. */
export type FollowedNumbers = {
  added: string[];
  removed: string[];
  /** Belong to another WABA here, and stay there. */
  taken: string[];
  /** Bodies that are taken in now, that are quarantined, and that came too late to be decided. */
  released: number;
  refused: number;
  waiting: number;
};

/**
 * Makes the numbers of a WABA those that upstream lists: adds, updates and removes (what is removed keeps its history),
 * and takes in what waited for a new one, before anything that comes later. What waited since before `askedAt` for a
 * number that is not listed is quarantined. Ends the task when nothing waits any more.
 */
export async function followNumbers(
  { database }: { database: Database },
  wabaId: string,
  listed: readonly PhoneNumber[],
  askedAt: Date,
): Promise<FollowedNumbers> {
  const numbers = [...new Map(listed.map((number) => [number.phoneNumberId, number])).values()];
  return await database.transaction(async (trx) => {
    await lockIntake(trx, shardOf(wabaId));
    const { added, taken } = await saveFollowedNumbers(trx, wabaId, numbers);
    const removed = await removeOtherNumbers(
      trx,
      wabaId,
      numbers.map(({ phoneNumberId }) => phoneNumberId),
    );
    const released = await releaseWaitingBodies(trx, wabaId);
    const refused = await refuseWaitingBodies(trx, wabaId, askedAt);
    const waiting = await countWaitingBodies(trx, wabaId);
    await saveNumbersProblem(trx, wabaId, problemOf(taken));
    if (added.length > 0 || removed.length > 0) {
      const detail = { added: added.join(', '), removed: removed.join(', ') };
      const change = { wabaId, action: 'waba.numbers_followed', target: `WABA ${wabaId}`, detail };
      await recordChange(trx, SYSTEM, change);
    }
    if (waiting === 0) await finishAskedTask(trx, numbersWorkflowId(wabaId));
    return { added, removed, taken, released, refused, waiting };
  });
}

function problemOf(taken: readonly string[]): string | null {
  return taken.length === 0
    ? null
    : `Upstream lists ${taken.join(', ')} as well, which belongs to another WABA here and stays there.`;
}
