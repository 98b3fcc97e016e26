import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { freePortBase } from './free-ports.ts';

declare module 'vitest' {
  interface ProvidedContext {
    stack: { dataDir: string; portBase: number; startSeconds: number };
  }
}

const PROJECT = fileURLToPath(new URL('../../../', import.meta.url));

/** Runs `heliograph-server start` once for all acceptance tests, as a user does, in an empty directory and on free ports. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const dataDir = join(mkdtempSync(join(tmpdir(), 'heliograph-acceptance-')), 'data');
  const portBase = await freePortBase();
  const begin = performance.now();
  const child = spawn(process.execPath, ['src/main.ts', 'start', '--data-dir', dataDir], {
    cwd: PROJECT,
    env: {
      ...process.env,
      HELIOGRAPH_EMBEDDED_PORT_BASE: String(portBase),
      HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS:
        '1,1,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await ready(child);
  project.provide('stack', { dataDir, portBase, startSeconds: (performance.now() - begin) / 1000 });
  return async () => {
    if (!hasEnded(child)) {
      child.kill('SIGINT');
      await once(child, 'exit');
    }
    rmSync(join(dataDir, '..'), { recursive: true, force: true });
  };
}

async function ready(child: ChildProcess): Promise<void> {
  let printed = '';
  const collect = (chunk: Buffer) => {
    printed += chunk;
  };
  child.stdout?.on('data', collect);
  child.stderr?.on('data', collect);
  while (!printed.includes('Heliograph is ready')) {
    if (hasEnded(child))
      throw new Error(`start ended with ${child.exitCode ?? child.signalCode}:\n${printed}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}
