import type { NumberOwner } from '../../accounts/accounts.ts';
import { SHARDS, shardOf } from '../shard.ts';
import type { ReadBody } from './body-portions.ts';
import { type InboxFloor, makeInboxFloor } from './inbox-floor.ts';
import { type IntakePace, makeIntakePace } from './intake-pace.ts';

/** What intake keeps of one shard in one process from batch to batch. */
export type ShardMemory = {
  readonly shard: number;
  readonly pace: IntakePace;
  readonly floor: InboxFloor;
  /** Bodies that were read and are left for the next turn: reading one can cost more than taking a part of it in. */
  readonly kept: Map<string, ReadBody>;
  /** Of what is remembered; null before the first look. */
  epoch(): string | null;
  /** Whether what is remembered is still so in the database (`intakeEpochs`); forgets it if not. */
  isOf(epoch: string): boolean;
  /** Something of it cannot be stored as it is. */
  refused(): void;
  /** Whether something of any shard was stored since something of this one was first refused: the system works. */
  othersAreStored(): boolean;
};

/** What intake keeps in one process. */
export type IntakeMemory = {
  /** Whose numbers are, of the shard of their WABA; unknown ones are asked for each time. */
  readonly owners: Map<string, NumberOwner>;
  of(shard: number): ShardMemory;
  /** Something of some shard was stored. */
  stored(): void;
};

/** The memory of a process that has not taken in anything yet. */
export function makeIntakeMemory(makeFloor: () => InboxFloor = () => makeInboxFloor()): IntakeMemory {
  const owners: IntakeMemory['owners'] = new Map();
  let storedCount = 0;
  const shards = SHARDS.map((shard): ShardMemory => {
    let known: string | null = null;
    let refusedAt: number | null = null;
    const floor = makeFloor();
    return {
      ...{ shard, floor, pace: makeIntakePace(), kept: new Map() },
      epoch: () => known,
      isOf(epoch) {
        if (epoch === known) return true;
        known = epoch;
        for (const [id, { wabaId }] of owners) if (shardOf(wabaId) === shard) owners.delete(id);
        floor.reset();
        return false;
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
