import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { onTestFinished } from 'vitest';
import { ensureBinaries } from '../../dev/embedded/binaries.ts';
import { startTemporal } from '../../dev/embedded/infrastructure.ts';
import { findFreePorts } from '../../dev/embedded/ports.ts';
import { createSupervisor, type Supervisor } from '../../dev/embedded/supervisor.ts';

export type OwnTemporal = {
  address: string;
  start(): Promise<void>;
  /** Ends the server; what it has stays on disk. */
  stop(): Promise<void>;
  /** Ends the server and forgets all that it has, its namespaces too. */
  loseData(): Promise<void>;
  /** kill -9; it is started again at once. */
  kill(): void;
  /** Lets it answer nothing until it is thawed; connections stay. */
  freeze(): void;
  thaw(): void;
  /** Connects to it while it runs; closed when the test ends. */
  connect(): Promise<Client>;
};

/** A Temporal server that a test may stop, apart from that of all tests; not running yet. */
export async function makeOwnTemporal(): Promise<OwnTemporal> {
  const dataDir = mkdtempSync(join(tmpdir(), 'heliograph-own-temporal-'));
  const { temporal: binary } = await ensureBinaries({ env: process.env, log: () => undefined });
  const [port = 0, uiPort = 0] = await findFreePorts(2);
  let supervisor: Supervisor | null = null;
  const stop = async () => {
    await supervisor?.stop();
    supervisor = null;
  };
  const signal = (name: NodeJS.Signals) => {
    const { temporal } = supervisor?.pids() ?? {};
    if (temporal !== undefined) process.kill(temporal, name);
  };
  onTestFinished(async () => {
    signal('SIGCONT');
    await stop();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 3 });
  });
  const address = `127.0.0.1:${port}`;
  return {
    address,
    start: async () => {
      const recordFile = join(dataDir, 'pids.json');
      supervisor = createSupervisor({ log: () => undefined, recordFile, restartDelayMs: 100 });
      const logFile = join(dataDir, 'temporal.log');
      await startTemporal(supervisor, { binary, dataDir, logFile, port, uiPort, durable: false });
    },
    stop,
    loseData: async () => {
      await stop();
      for (const file of readdirSync(dataDir)) rmSync(join(dataDir, file), { recursive: true });
    },
    kill: () => signal('SIGKILL'),
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    connect: async () => {
      const connection = await Connection.connect({ address });
      onTestFinished(() => connection.close());
      return new Client({ connection });
    },
  };
}
