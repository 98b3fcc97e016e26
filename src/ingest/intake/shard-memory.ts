import type { ShardLook } from '../../engine/inbox/bodies.ts';
import { SHARDS } from '../../engine/inbox/shards.ts';
import type { NumberOwner } from '../../features/accounts/number-owners.ts';
import { type InboxFloor, makeInboxFloor } from './inbox-floor.ts';
import { type IntakePace, makeIntakePace } from './intake-pace.ts';
import { KnownCustomers } from './known-customers.ts';
import type { ReadBody } from './portions.ts';

export type ShardMemory = {
  readonly shard: number;
  readonly pace: IntakePace;
  readonly floor: InboxFloor;
  /** Bodies that were read and are left for the next turn: reading one can cost more than taking a part of it in. */
  readonly kept: Map<string, ReadBody>;
  /** Of what is remembered; null before the first look. */
  epoch(): string | null;
  /** Whether the epoch has to be read again before it is relied upon. */
  isDoubted(): boolean;
  doubt(): void;
  /** Forgets what is remembered unless it is of this epoch, which the database has now (`intakeEpochs`). */
  adopt(epoch: string): void;
  refused(): void;
  /** Whether something of any shard was stored since something of this one was first refused: the system works. */
  othersAreStored(): boolean;
};

export type IntakeMemory = {
  /** Whose numbers are; unknown ones are asked for each time. */
  readonly owners: Map<string, NumberOwner>;
  readonly customers: KnownCustomers;
  of(shard: number): ShardMemory;
  stored(): void;
};

export function makeIntakeMemory(makeFloor: () => InboxFloor = () => makeInboxFloor()): IntakeMemory {
  const owners: IntakeMemory['owners'] = new Map();
  const customers = new KnownCustomers();
  let storedCount = 0;
  const shards = SHARDS.map((shard): ShardMemory => {
    let known: string | null = null;
    let isDoubted = true;
    let refusedAt: number | null = null;
    const floor = makeFloor();
    const kept: ShardMemory['kept'] = new Map();
    return {
      shard,
      floor,
      pace: makeIntakePace(),
      kept,
      epoch: () => known,
      isDoubted: () => isDoubted,
      doubt() {
        isDoubted = true;
      },
      adopt(epoch) {
        isDoubted = false;
        if (epoch === known) return;
        known = epoch;
        owners.clear();
        customers.clear();
        floor.reset();
        // Another process may have ingested a body since, and an erasure may have cut it.
        kept.clear();
      },
      refused() {
        refusedAt ??= storedCount;
      },
      othersAreStored() {
        const isSo = refusedAt !== null && storedCount > refusedAt;
        if (isSo) refusedAt = null;
        return isSo;
      },
    };
  });
  return {
    owners,
    customers,
    of(shard) {
      const memory = shards[shard];
      if (memory === undefined) throw new RangeError(`there is no shard ${shard}`);
      return memory;
    },
    stored: () => {
      storedCount += 1;
    },
  };
}

export function lookOf({ shard, floor }: Pick<ShardMemory, 'shard' | 'floor'>): ShardLook {
  return { shard, fromId: floor.from(), fromDay: floor.fromDay() };
}

/**
 * Notes what a transaction relies on before it has the locks of the shards. The function returned gets the epochs of those
 * that it could lock: it adopts them, and returns whether what was noted is still so. Another transaction of the process
 * may have adopted them meanwhile.
 */
export function noteEpochs(
  memories: readonly ShardMemory[],
): (epochs: ReadonlyMap<number, string>) => boolean {
  const noted = memories.map((memory) => ({ memory, epoch: memory.epoch() }));
  return (epochs) => {
    let areStill = true;
    for (const { memory, epoch } of noted) {
      const current = epochs.get(memory.shard);
      if (current === undefined) continue;
      memory.adopt(current);
      if (current !== epoch) areStill = false;
    }
    return areStill;
  };
}
