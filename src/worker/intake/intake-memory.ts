import type { NumberOwner } from '../../database/accounts.ts';
import type { ReadBody } from './body-portions.ts';
import { type InboxFloor, makeInboxFloor } from './inbox-floor.ts';

/** What intake keeps in one process from batch to batch. */
export type IntakeMemory = {
  /** Whose numbers are; unknown ones are asked for each time. */
  owners: Map<string, NumberOwner>;
  floor: InboxFloor;
  /** Bodies that were read and are left for the next turn: reading one can cost more than taking a part of it in. */
  kept: Map<string, ReadBody>;
  /** Whether owners and floor are still those of the database (`intakeEpoch`); forgets them if not. */
  isOf(epoch: string): boolean;
};

export function makeIntakeMemory(floor = makeInboxFloor()): IntakeMemory {
  const owners: IntakeMemory['owners'] = new Map();
  let known: string | null = null;
  return {
    owners,
    floor,
    kept: new Map(),
    isOf(epoch) {
      if (epoch === known) return true;
      known = epoch;
      owners.clear();
      floor.reset();
      return false;
    },
  };
}
