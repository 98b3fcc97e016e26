import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { oldestNode } from './programs.ts';
import { PROJECT } from './stack.ts';

const run = promisify(execFile);
const MODULES = join(PROJECT, 'node_modules');

/** Packs heliograph-cli as for a registry and unpacks it; returns the file that users run. */
export async function packCli(directory: string): Promise<string> {
  const clients = join(directory, 'source', 'clients');
  // A copy, so that nothing is built inside the clone; the sources are read there.
  cpSync(join(PROJECT, 'clients', 'cli'), join(clients, 'cli'), {
    recursive: true,
    filter: (path) => !/[\\/](dist|node_modules|src)$/.test(path),
  });
  mkdirSync(join(directory, 'packed'));
  for (const name of ['node_modules', 'scripts'])
    symlinkSync(join(PROJECT, name), join(directory, 'source', name));
  const env = { ...process.env, PATH: `${join(MODULES, '.bin')}${delimiter}${process.env.PATH}` };
  const packed = join(directory, 'packed');
  const args = ['pack', '--offline', '--json', '--pack-destination', packed];
  const { stdout } = await run('npm', args, { cwd: join(clients, 'cli'), env });
  const [{ filename, files }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [
    { filename: string; files: { path: string }[] },
  ];
  const paths = files.map(({ path }) => path).sort();
  if (paths.join() !== 'README.md,dist/heliograph.js,package.json') throw new Error(`packed: ${paths}`);
  await run('tar', ['-xzf', filename], { cwd: packed });
  return join(packed, 'package', 'dist', 'heliograph.js');
}

export type CliRun = {
  stdout(): string;
  stderr(): string;
  /** Presses keys. */
  type(text: string): void;
  endInput(text: string): void;
  interrupt(): void;
  /** The exit code. */
  ended: Promise<number | null>;
};

/** Runs the built tool with the oldest Node.js that users may have. */
export function startCli(file: string, args: readonly string[], env: Record<string, string>): CliRun {
  const child = spawn(oldestNode(), [file, ...args], { env: { PATH: process.env.PATH ?? '', ...env } });
  const written = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    written.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    written.stderr += text;
  });
  const ended = once(child, 'close').then(([code]) => code as number | null);
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return {
    stdout: () => written.stdout,
    stderr: () => written.stderr,
    type: (text) => void child.stdin.write(text),
    endInput: (text) => void child.stdin.end(text),
    interrupt: () => void child.kill('SIGINT'),
    ended,
  };
}

/** Runs the tool to its end, with some text as its input. */
export async function runCli(file: string, args: readonly string[], env: Record<string, string>, input = '') {
  const started = startCli(file, args, env);
  started.endInput(input);
  return { code: await started.ended, stdout: started.stdout(), stderr: started.stderr() };
}
