import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import type { PartDefinition } from '../../dev/embedded/process-part.ts';
import { minimalEnvironment, runCommand } from '../../dev/embedded/run-command.ts';
import { DATABASE_USER } from './database-server.ts';
import type { Machine } from './machines.ts';
import type { Programs } from './programs.ts';

export const NAMESPACE = 'heliograph';
const STORES = [
  { database: 'temporal', schema: 'temporal' },
  { database: 'temporal_visibility', schema: 'visibility' },
] as const;

export type TemporalDatabase = { address: string; password: string };

/** Makes Temporal's two databases, with its own tool. */
export async function makeTemporalSchema(
  programs: Programs,
  { address, password }: TemporalDatabase,
): Promise<void> {
  const tool = async (database: string, ...args: string[]) => {
    const options = ['--plugin', 'postgres12', '--ep', address, '-p', '5432', '-u', DATABASE_USER];
    const command = [programs.temporalSqlTool, ...options, '--pw', password, '--db', database, ...args];
    const { code, output } = await runCommand(command, { env: minimalEnvironment(), timeoutMs: 120_000 });
    if (code !== 0) throw new Error(`temporal-sql-tool ${args.join(' ')} failed:\n${output.trim()}`);
  };
  for (const { database, schema } of STORES) {
    await tool(database, 'create');
    await tool(database, 'setup-schema', '--version', '0.0');
    await tool(database, 'update-schema', '--schema-name', `postgresql/v12/${schema}`);
  }
}

const DYNAMIC_CONFIG = fileURLToPath(new URL('../../deploy/temporal/dynamic-config.yaml', import.meta.url));

/** All four roles of a Temporal node on one machine, as docker-compose.yml runs them. */
export function temporalNode(
  machine: Machine,
  programs: Programs,
  { address, password }: TemporalDatabase,
  logDir: string,
): PartDefinition {
  return {
    name: machine.name,
    launcher: machine.launcher,
    command: programs.temporalServer,
    args: ['start'],
    env: minimalEnvironment({
      DB: 'postgres12',
      DB_PORT: '5432',
      POSTGRES_SEEDS: address,
      POSTGRES_USER: DATABASE_USER,
      POSTGRES_PWD: password,
      NUM_HISTORY_SHARDS: '64',
      BIND_ON_IP: machine.address,
      TEMPORAL_BROADCAST_ADDRESS: machine.address,
      LOG_LEVEL: 'warn',
      DYNAMIC_CONFIG_FILE_PATH: DYNAMIC_CONFIG,
    }),
    logFile: join(logDir, `${machine.name}.log`),
    stopSignal: 'SIGTERM',
    stopGraceMs: 20_000,
    isReady: () => isServing(`${machine.address}:7233`),
  };
}

/** Makes the namespace of the product. */
export async function makeNamespace(address: string): Promise<void> {
  const connection = await Connection.connect({ address });
  try {
    await connection.workflowService.registerNamespace({
      namespace: NAMESPACE,
      workflowExecutionRetentionPeriod: msToTs('1 day'),
    });
  } finally {
    await connection.close();
  }
}

/** Whether a frontend finds the other roles: it reads the list of namespaces. */
async function isServing(address: string): Promise<boolean> {
  const connection = await Connection.connect({ address, connectTimeout: 1_000 });
  try {
    await connection.withDeadline(Date.now() + 2_000, () => connection.workflowService.listNamespaces({}));
    return true;
  } finally {
    await connection.close();
  }
}
