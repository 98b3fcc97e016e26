import { ensureBinaries } from '../dev/embedded/binaries.ts';
import { provideOldestNode } from '../test/acceptance/support/programs.ts';
import { pythonEnvironment } from '../test/acceptance/support/python-environment.ts';
import { PYTHON_PACKAGES } from '../test/acceptance/support/python-packages.ts';
import { GO, goProgram } from '../test/unit/deployment/go-programs.ts';

/**
 * Runs before `npm test`: fetches or builds what its tests need, side by side, so that no test waits for a build, or runs
 * beside one. All of it is kept in the user's cache. What cannot be had is said here, and its tests say so again.
 */

const say = (line: string) => void process.stdout.write(`${line}\n`);
const begin = performance.now();

async function provide(what: string, work: () => Promise<unknown>): Promise<void> {
  const startedMs = performance.now();
  const progress = setInterval(() => say(`still getting ${what}: ${secondsSince(startedMs)} s`), 30_000);
  try {
    await work();
    if (performance.now() - startedMs > 5_000) say(`${what} is there (${secondsSince(startedMs)} s)`);
  } catch (error) {
    say(`${what} cannot be had: ${(error as Error).message}`);
  } finally {
    clearInterval(progress);
  }
}

function secondsSince(startMs: number): string {
  return ((performance.now() - startMs) / 1_000).toFixed(0);
}

async function provideInTurn<T extends string>(
  kind: string,
  names: readonly T[],
  make: (name: T) => Promise<unknown>,
): Promise<void> {
  for (const name of names) await provide(`${kind} ${name}`, () => make(name));
}

// Go uses every processor for one program; Python and npm wait for the network.
await Promise.all([
  provide('Temporal and MinIO', () => ensureBinaries({ env: process.env, log: say })).then(() =>
    GO === undefined ? undefined : provideInTurn('the program', ['caddy', 'actionlint', 'helm'], goProgram),
  ),
  provideInTurn(
    'the Python environment',
    Object.keys(PYTHON_PACKAGES) as (keyof typeof PYTHON_PACKAGES)[],
    pythonEnvironment,
  ),
  provide('the oldest Node.js', provideOldestNode),
]);
if (performance.now() - begin > 5_000) say(`What the tests need is there (${secondsSince(begin)} s).`);
