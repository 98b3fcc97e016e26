import { setTimeout as delay } from 'node:timers/promises';
import type { PartDefinition } from '../../dev/embedded/process-part.ts';
import type { Installation } from './installation.ts';

export type Fault = {
  name: string;
  about: string;
  /** After so long healthy traffic has to be back, counted from the beginning of the fault. */
  targetSeconds: number;
  /** For what an operator does on purpose: upstream notices nothing. */
  noRefusal?: boolean;
  /** Why it cannot happen here; null: it can. */
  cannotRun?(installation: Installation): string | null;
  /** Lets it happen, and ends it. */
  run(installation: Installation, log: (line: string) => void): Promise<void>;
};

/** Longer than a lease and than all time-outs together: it is not the end of the fault that brings traffic back. */
const FAULT_MS = 20_000;
const TARGET_SECONDS = 15;
const FAIL_OVER_SECONDS = 30;

/** All faults in the order in which they happen. */
export const FAULTS: readonly Fault[] = [
  ...['worker-1', 'api-1', 'temporal-1', 'store'].map(killed),
  ...['worker-2', 'api-2', 'temporal-2'].map(frozen),
  parted('worker-1', 'temporal-lb'),
  parted('api-1', 'temporal-lb'),
  parted('temporal-1', 'temporal-2'),
  parted('proxy', 'api-3'),
  partedFromDatabase('worker-1'),
  partedFromDatabase('api-1'),
  partedFromDatabase('temporal-1'),
  ...clockFaults(),
  {
    name: 'part-db-db',
    about: 'primary and standby do not reach each other',
    targetSeconds: TARGET_SECONDS,
    run: async ({ pair, machine }) => {
      const [one, other] = [machine('db-1'), machine('db-2')];
      one.partFrom(other);
      await delay(FAULT_MS);
      one.reunite();
      await untilFollowed(pair.primary);
    },
  },
  {
    name: 'kill-standby',
    about: 'the machine of the standby dies',
    targetSeconds: TARGET_SECONDS,
    run: async ({ pair, crash }) => {
      const standby = pair.standby();
      if (standby === null) throw new Error('there is no standby');
      await crash(standby.machine.name);
      await delay(FAULT_MS);
      await pair.rebuildStandby();
    },
  },
  failOver('kill-primary', 'the machine of the primary dies', ({ pair, crash }) =>
    crash(pair.primary().machine.name),
  ),
  failOver('freeze-primary', 'the machine of the primary stands still', async ({ pair }) => {
    const { machine } = pair.primary();
    machine.unplug();
    machine.group.freeze();
  }),
  ...rollingRestarts(),
];

function killed(name: string): Fault {
  return {
    name: `kill-${name}`,
    about: `the machine ${name} dies without a word, and is back later`,
    targetSeconds: TARGET_SECONDS,
    run: async ({ machine, supervisor, definition, crash }) => {
      await crash(name);
      await delay(FAULT_MS);
      machine(name).plugIn();
      await supervisor.start(definition(name));
    },
  };
}

function frozen(name: string): Fault {
  return {
    name: `freeze-${name}`,
    about: `the machine ${name} stands still, and goes on later`,
    targetSeconds: TARGET_SECONDS,
    run: async ({ machine }) => {
      machine(name).unplug();
      machine(name).group.freeze();
      await delay(FAULT_MS);
      machine(name).group.thaw();
      machine(name).plugIn();
    },
  };
}

function parted(one: string, other: string): Fault {
  return {
    name: `part-${one}-${other}`,
    about: `${one} and ${other} do not reach each other`,
    targetSeconds: TARGET_SECONDS,
    run: async ({ machine }) => {
      machine(one).partFrom(machine(other));
      await delay(FAULT_MS);
      machine(one).reunite();
    },
  };
}

function partedFromDatabase(name: string): Fault {
  return {
    name: `part-${name}-db`,
    about: `${name} does not reach the database`,
    targetSeconds: TARGET_SECONDS,
    run: async ({ machine, network }) => {
      machine(name).partFrom({ address: network.floatingAddress });
      await delay(FAULT_MS);
      machine(name).reunite();
    },
  };
}

function clockFaults(): Fault[] {
  const offsets = [
    ['worker-1', 'ahead', '+300s'],
    ['worker-2', 'behind', '-300s'],
    ['api-1', 'ahead', '+300s'],
    ['api-2', 'behind', '-300s'],
  ] as const;
  return offsets.map(([name, direction, offset]) => ({
    name: `clock-${name}`,
    about: `the clock of ${name} is 5 minutes ${direction}`,
    targetSeconds: TARGET_SECONDS,
    cannotRun: ({ programs }) =>
      programs.libfaketime === null ? 'libfaketime is not installed (Debian: libfaketime)' : null,
    run: async ({ definition, replace, programs }) => {
      const right = definition(name);
      const env = { ...right.env, ...fakeTime(programs.libfaketime ?? '', offset) };
      await replace({ ...right, env });
      await delay(FAULT_MS);
      await replace(right);
    },
  }));
}

/** The time that a process is told, not what it waits for: a clock that is wrong still runs evenly. */
function fakeTime(library: string, offset: string): PartDefinition['env'] {
  return {
    LD_PRELOAD: library,
    FAKETIME: offset,
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    DONT_FAKE_MONOTONIC: '1',
  };
}

function failOver(name: string, about: string, strike: (installation: Installation) => Promise<void>): Fault {
  return {
    name,
    about: `${about}: fail-over`,
    targetSeconds: FAIL_OVER_SECONDS,
    run: async (installation) => {
      const { pair } = installation;
      if (pair.standby() === null) await pair.rebuildStandby();
      const before = pair.primary();
      await strike(installation);
      const deadline = Date.now() + 60_000;
      while (pair.primary() === before) {
        if (Date.now() > deadline) throw new Error('there was no fail-over');
        await delay(100);
      }
      await delay(FAULT_MS);
      await pair.rebuildStandby();
    },
  };
}

function rollingRestarts(): Fault[] {
  const tiers = {
    api: ['api-1', 'api-2', 'api-3'],
    worker: ['worker-1', 'worker-2', 'worker-3'],
    temporal: ['temporal-1', 'temporal-2'],
    store: ['store'],
  };
  const restarts = Object.entries(tiers).map(
    ([tier, names]): Fault => ({
      name: `restart-${tier}`,
      about: `every ${tier} restarts, one after the other`,
      targetSeconds: TARGET_SECONDS,
      noRefusal: true,
      run: async ({ definition, replace }) => {
        for (const name of names) {
          await replace(definition(name));
          await delay(2_000);
        }
      },
    }),
  );
  return [
    ...restarts,
    {
      name: 'restart-proxy',
      about: 'the proxy starts anew (SIGUSR2)',
      targetSeconds: TARGET_SECONDS,
      noRefusal: true,
      run: async ({ supervisor }) => {
        for (const name of ['proxy', 'temporal-lb']) {
          const pid = supervisor.pidOf(name);
          if (pid !== undefined) process.kill(pid, 'SIGUSR2');
          await delay(3_000);
        }
      },
    },
    {
      name: 'restart-postgres',
      about: 'the standby restarts, takes over, the other becomes the standby',
      targetSeconds: TARGET_SECONDS,
      noRefusal: true,
      run: async ({ pair }) => {
        if (pair.standby() === null) await pair.rebuildStandby();
        await pair.switchOver();
        await pair.rebuildStandby();
      },
    },
  ];
}

async function untilFollowed(primary: Installation['pair']['primary']): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (Date.now() < deadline) {
    const rows = await primary().query(`select 1 from pg_stat_replication where sync_state = 'sync'`);
    if (rows.length > 0) return;
    await delay(500);
  }
  throw new Error('the standby is not synchronous again');
}
