import { spawn } from 'node:child_process';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { vi } from 'vitest';
import { buildAdminCommand } from '../../src/admin.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { seedFixtureAccounts } from './test-accounts.ts';
import { testDatabase } from './test-database.ts';
import { testSettings } from './test-settings.ts';

export const MAIN_SCRIPT = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

export const WABA = '900000000000101';
export const OTHER_WABA = '900000000000202';

export type AdminRun = { stdout: string; stderr: string; exitCode: number | null };

/** Runs `heliograph-server admin …` as operators do: a process of its own, settings in its environment only. */
export async function runAdminProcess(
  settings: Record<string, string>,
  args: readonly string[],
): Promise<AdminRun> {
  const child = spawn(process.execPath, [MAIN_SCRIPT, 'admin', ...args], {
    env: { PATH: process.env.PATH ?? '', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    output.stderr += text;
  });
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { ...output, exitCode };
}

/** Environment, streams and exit of this process belong to one command at a time. */
let last: Promise<unknown> = Promise.resolve();

/** The same command in this process, which saves the second that a new one needs to load its code. */
export async function runAdmin(
  settings: Record<string, string>,
  args: readonly string[],
  stdin = '',
): Promise<AdminRun> {
  return await runHere(buildAdminCommand(), settings, args, stdin);
}

/** Runs a command of Heliograph in this process. */
export async function runHere(
  command: Command,
  settings: Record<string, string>,
  args: readonly string[],
  stdin = '',
): Promise<AdminRun> {
  const run = last.then(() => runNow(command, settings, args, stdin));
  last = run.catch(() => undefined);
  return await run;
}

class Exit extends Error {}

async function runNow(
  command: Command,
  settings: Record<string, string>,
  args: readonly string[],
  stdin: string,
): Promise<AdminRun> {
  const output = { stdout: '', stderr: '' };
  const before = { env: process.env, exitCode: process.exitCode };
  process.env = { PATH: before.env.PATH ?? '', ...settings };
  process.exitCode = 0;
  const mocks = [
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      output.stdout += text;
      return true;
    }),
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      output.stderr += text;
      return true;
    }),
    vi.spyOn(process, 'stdin', 'get').mockReturnValue(Readable.from([stdin]) as typeof process.stdin),
    vi.spyOn(process, 'exit').mockImplementation((code) => {
      process.exitCode = code ?? process.exitCode;
      throw new Exit();
    }),
  ];
  try {
    await command.parseAsync(args, { from: 'user' });
    return { ...output, exitCode: Number(process.exitCode) };
  } catch (error) {
    if (error instanceof Exit) return { ...output, exitCode: Number(process.exitCode) };
    throw error;
  } finally {
    for (const mock of mocks) mock.mockRestore();
    process.env = before.env;
    process.exitCode = before.exitCode;
  }
}

export type AdminStack = {
  database: Database;
  databaseUrl: string;
  settings: Record<string, string>;
  admin(args: readonly string[], stdin?: string): Promise<AdminRun>;
  /** Runs with --json, expects success and one line of JSON, and returns what it says. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever the command printed
  json(...args: string[]): Promise<any>;
};

/** A command line on a database of its own, which holds the fixtures' accounts unless it is to be `empty`. */
export async function startAdmin({ empty = false, settings: overrides = {} } = {}): Promise<AdminStack> {
  const { database, url } = await testDatabase();
  if (!empty) await seedFixtureAccounts(database);
  const settings = testSettings(url, overrides);
  const admin = (args: readonly string[], stdin = '') => runAdmin(settings, args, stdin);
  return {
    database,
    databaseUrl: url,
    settings,
    admin,
    json: async (...args) => {
      const run = await admin([...args, '--json']);
      if (run.exitCode !== 0 || !/^[^\n]+\n$/.test(run.stdout)) {
        throw new Error(`admin ${args.join(' ')} ended with ${run.exitCode}:\n${run.stdout}${run.stderr}`);
      }
      return JSON.parse(run.stdout);
    },
  };
}
