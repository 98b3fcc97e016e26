import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  descriptionFile,
  type EmbeddedDescription,
} from '../../src/platform/local-stack/embedded-description.ts';
import { freePortBase } from '../../test/acceptance/support/free-ports.ts';

const PROJECT = fileURLToPath(new URL('../../', import.meta.url));

/** Runs `npm start` as it is, beside whatever else runs, until it is stopped; `description` is read anew each time. */
export async function startOwnStack() {
  const folder = mkdtempSync(join(tmpdir(), 'heliograph-screenshots-'));
  const dataDir = join(folder, 'data');
  const child = spawn(process.execPath, ['src/main.ts', 'start', '--data-dir', dataDir], {
    cwd: PROJECT,
    env: { ...process.env, HELIOGRAPH_EMBEDDED_PORT_BASE: String(await freePortBase()) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGINT');
      await once(child, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  };
  const description = () => JSON.parse(readFileSync(descriptionFile(dataDir), 'utf8')) as EmbeddedDescription;
  try {
    await ready(child);
    return { description, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function ready({ stdout }: ChildProcess): Promise<void> {
  let printed = '';
  await new Promise<void>((resolve, reject) => {
    stdout?.on('data', (chunk: Buffer) => {
      if (printed.includes('Heliograph is ready')) return;
      printed += chunk;
      if (printed.includes('Heliograph is ready')) resolve();
    });
    stdout?.on('end', () => reject(new Error(`the stack did not start:\n${printed}`)));
  });
}
