import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { DrillSupervisor } from '../../test/drill/drill-supervisor.ts';
import {
  copyToStandby,
  DATABASE_USER,
  type DatabaseOptions,
  type DatabaseServer,
  databaseServer,
  initialise,
} from './database-server.ts';
import type { Machine, Network } from './machines.ts';

/** A primary and its synchronous standby behind one address. */
export type DatabasePair = {
  url(database: string): string;
  primary(): DatabaseServer;
  standby(): DatabaseServer | null;
  /** What is done when one of the two is silent, as a fail-over manager does it. Stops with `signal`. */
  watch(signal: AbortSignal): Promise<void>;
  /** The standby takes over from a primary that is stopped in order. */
  switchOver(): Promise<void>;
  /** Makes the machine that has no server any more the standby; resolves when it is synchronous. */
  rebuildStandby(): Promise<void>;
};

type PairOptions = DatabaseOptions & {
  network: Network;
  machines: readonly [Machine, Machine];
  supervisor: DrillSupervisor;
  dataDir: string;
  log: (line: string) => void;
};

const CHECK_EVERY_MS = 500;
const ANSWER_WITHIN_MS = 4_000;
/** Silence that is taken for the end of a server. */
const PATIENCE_MS = 8_000;

/** Starts the pair with an empty cluster. */
export async function startDatabasePair(options: PairOptions): Promise<DatabasePair> {
  const { machines, supervisor, dataDir } = options;
  const servers = await Promise.all(
    machines.map((machine) => databaseServer(machine, join(dataDir, machine.name, 'data'), options)),
  );
  const [first, second] = servers;
  if (first === undefined || second === undefined) throw new Error('a pair has two machines');
  for (const { dataDirectory } of servers) mkdirSync(dirname(dataDirectory), { recursive: true });
  await initialise(first, options);
  await supervisor.start(first.definition);
  takeAddress(options, first.machine);
  const pair = new Pair(options, first, second);
  await pair.rebuildStandby();
  return {
    url: (database) =>
      `postgres://${DATABASE_USER}:${options.password}@${options.network.floatingAddress}:5432/${database}`,
    primary: () => pair.primary,
    standby: () => pair.standby,
    watch: (signal) => pair.watch(signal),
    switchOver: () => pair.switchOver(),
    rebuildStandby: () => pair.rebuildStandby(),
  };
}

function takeAddress({ network }: PairOptions, machine: Machine): void {
  machine.addAddress(network.floatingAddress);
  network.announce(network.floatingAddress);
}

class Pair {
  readonly #options: PairOptions;
  primary: DatabaseServer;
  standby: DatabaseServer | null = null;
  #spare: DatabaseServer;
  #isSynchronous = false;
  #isPromoting = false;
  /** When each was last heard of. */
  #primarySeenMs = Date.now();
  #standbySeenMs = Date.now();

  constructor(options: PairOptions, primary: DatabaseServer, spare: DatabaseServer) {
    this.#options = options;
    this.primary = primary;
    this.#spare = spare;
  }

  async rebuildStandby(): Promise<void> {
    const { supervisor } = this.#options;
    const standby = this.#spare;
    await supervisor.remove(standby.machine.name, 'kill');
    standby.machine.plugIn();
    await copyToStandby(this.primary, standby, this.#options);
    await supervisor.start(standby.definition);
    const deadline = Date.now() + 60_000;
    while (!(await isFollowed(this.primary))) {
      if (Date.now() > deadline) throw new Error('the standby does not follow its primary');
      await delay(100);
    }
    this.standby = standby;
    this.#heardOfBoth();
    await this.#setSynchronous(true);
  }

  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const beganMs = Date.now();
      await delay(CHECK_EVERY_MS);
      // Who stood still himself knows nothing of the others.
      if (Date.now() - beganMs > 2 * CHECK_EVERY_MS + ANSWER_WITHIN_MS) this.#heardOfBoth();
      try {
        await this.#look();
      } catch (error) {
        this.#options.log(`fail-over manager: ${(error as Error).message}`);
      }
    }
  }

  #heardOfBoth(): void {
    this.#primarySeenMs = Date.now();
    this.#standbySeenMs = Date.now();
  }

  async #look(): Promise<void> {
    const { primary, standby } = this;
    if (this.#isPromoting) return;
    const followed = await isFollowed(primary).catch(() => null);
    const now = Date.now();
    if (followed !== null) this.#primarySeenMs = now;
    if (followed !== false) this.#standbySeenMs = now;
    if (followed === true && standby !== null && !this.#isSynchronous) await this.#setSynchronous(true);
    if (followed === false && this.#isSynchronous && now - this.#standbySeenMs > PATIENCE_MS) {
      await this.#setSynchronous(false);
    }
    if (
      followed === null &&
      standby !== null &&
      this.#isSynchronous &&
      now - this.#primarySeenMs > PATIENCE_MS
    ) {
      await this.#failOver(standby);
    }
  }

  async switchOver(): Promise<void> {
    const { standby } = this;
    if (standby === null) throw new Error('there is no standby');
    // Its last words reach the standby before it ends.
    await this.#promote(standby, () => this.#options.supervisor.remove(this.primary.machine.name, 'stop'));
  }

  /** The old primary is cut off before the other becomes one: there are never two. */
  async #failOver(standby: DatabaseServer): Promise<void> {
    await this.#promote(standby, async () => {
      const { machine } = this.primary;
      machine.unplug();
      machine.killAll();
      machine.group.thaw();
      await this.#options.supervisor.remove(machine.name, 'kill');
    });
  }

  async #promote(standby: DatabaseServer, end: () => Promise<void>): Promise<void> {
    const { log } = this.#options;
    const lost = this.primary;
    this.#isPromoting = true;
    try {
      await end();
      await this.#takeOver(standby, lost);
    } finally {
      this.#isPromoting = false;
    }
    log(`fail-over manager: ${standby.machine.name} is the primary now`);
  }

  async #takeOver(standby: DatabaseServer, lost: DatabaseServer): Promise<void> {
    const { network } = this.#options;
    lost.machine.removeAddress(network.floatingAddress);
    await standby.query('alter system reset synchronous_standby_names');
    await standby.query('select pg_reload_conf()');
    await standby.query('select pg_promote(true, 20)', 25_000);
    takeAddress(this.#options, standby.machine);
    this.primary = standby;
    this.standby = null;
    this.#spare = lost;
    this.#isSynchronous = false;
    this.#primarySeenMs = Date.now();
  }

  async #setSynchronous(synchronous: boolean): Promise<void> {
    const { primary } = this;
    const names = synchronous ? `'standby'` : `''`;
    await primary.query(`alter system set synchronous_standby_names = ${names}`);
    await primary.query('select pg_reload_conf()');
    this.#isSynchronous = synchronous;
    this.#options.log(`fail-over manager: the standby is ${synchronous ? '' : 'not '}synchronous`);
  }
}

/** Whether a standby follows now. Rejects when the server itself does not answer. */
async function isFollowed(primary: DatabaseServer): Promise<boolean> {
  const rows = await primary.query<{ n: number }>(
    `select 1 as n from pg_stat_replication where state = 'streaming'`,
    ANSWER_WITHIN_MS,
  );
  return rows.length > 0;
}
