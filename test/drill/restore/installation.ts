import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PartDefinition } from '../../../dev/embedded/process-part.ts';
import type { DrillAccount } from '../accounts.ts';
import type { DrillSupervisor } from '../drill-supervisor.ts';
import { type DrillStack, startStack } from '../stack.ts';
import { archiveSettings } from './database-copies.ts';

/** What reconcile says of one kind of difference. */
export type Difference = {
  kind: string;
  found: number;
  left: number;
  problem: string | null;
  examples: string[];
};

/** A whole product whose parts can be stopped and started again by their names. */
export type Installation = DrillStack & {
  /** Where PostgreSQL has its files and its archive, and the other two theirs. */
  paths: { postgres: string; archive: string; temporal: string; objects: string; copies: string };
  stop(names: readonly string[], how: 'stop' | 'kill'): Promise<void>;
  start(names: readonly string[]): Promise<void>;
  /** `heliograph …`; throws unless it ends with 0 or, for reconcile, 1. */
  heliograph(...args: string[]): Promise<string>;
  reconcile(...args: string[]): Promise<Difference[]>;
};

/** The processes of the product. */
export const PROCESSES = ['all', 'worker-2'] as const;

/** Starts everything, with a PostgreSQL that archives its log. */
export async function startInstallation(
  dataDir: string,
  supervisor: DrillSupervisor,
  options: {
    accounts: readonly DrillAccount[];
    endpointUrls: readonly string[];
    archiveSeconds: number;
    log: (line: string) => void;
  },
): Promise<Installation> {
  const definitions = new Map<string, PartDefinition>();
  const archive = join(dataDir, 'archive');
  const start = async (definition: PartDefinition) => {
    definitions.set(definition.name, definition);
    await supervisor.start(definition);
  };
  const stack = await startStack(
    dataDir,
    { ...supervisor, start },
    { ...options, processes: 'one', postgresSettings: archiveSettings(archive, options.archiveSeconds) },
  );
  const heliograph = (...args: string[]) => runHeliograph(stack.environment, args);
  return {
    ...stack,
    heliograph,
    paths: {
      archive,
      postgres: join(dataDir, 'postgres', 'data'),
      temporal: join(dataDir, 'temporal'),
      objects: join(dataDir, 'minio', 'objects'),
      copies: join(dataDir, 'copies'),
    },
    stop: async (names, how) => {
      await Promise.all(names.map((name) => supervisor.remove(name, how)));
      for (const name of names) await definitions.get(name)?.removeLeftovers?.();
    },
    start: async (names) => {
      await Promise.all(
        names.map(async (name) => {
          const definition = definitions.get(name);
          if (definition === undefined) throw new Error(`there is no part ${name}`);
          await supervisor.start(definition);
        }),
      );
    },
    reconcile: async (...args) => {
      const { findings } = JSON.parse(await heliograph('reconcile', '--json', ...args)) as {
        findings: Difference[];
      };
      return findings;
    },
  };
}

const MAIN_SCRIPT = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));

function runHeliograph(environment: Readonly<Record<string, string>>, args: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { PATH: process.env.PATH, ...environment };
    execFile(process.execPath, [MAIN_SCRIPT, ...args], { env }, (error, stdout, stderr) => {
      // Something differs, which is no failure.
      const differs = args[0] === 'reconcile' && error?.code === 1 && stdout !== '';
      if (error === null || differs) resolve(stdout);
      else reject(new Error(`heliograph ${args.join(' ')} failed: ${error.message}\n${stderr}`));
    });
  });
}
