import { ensureBinaries } from '../dev/embedded/binaries.ts';
import { provideOldestNode } from '../test/acceptance/support/programs.ts';
import { pythonEnvironment, systemPython } from '../test/acceptance/support/python-environment.ts';
import { PYTHON_PACKAGES } from '../test/acceptance/support/python-packages.ts';
import { GO, goProgram } from '../test/unit/deployment/go-programs.ts';

/**
 * Runs before `npm test`: fetches or builds what its tests need, side by side, so that no test waits for a build, or runs
 * beside one. All of it is kept in the user's cache. What cannot be had is said here, and its tests say so again.
 */

const say = (line: string) => void process.stdout.write(`${line}\n`);
const begin = performance.now();

async function provide(what: string, tests: string, work: () => Promise<unknown>): Promise<void> {
  const startedMs = performance.now();
  const progress = setInterval(() => say(`still getting ${what}: ${secondsSince(startedMs)} s`), 30_000);
  try {
    await work();
    if (performance.now() - startedMs > 5_000) say(`${what} is there (${secondsSince(startedMs)} s)`);
  } catch (error) {
    // What was tried, behind the first line, the tests say.
    const [reason] = (error as Error).message.split(/(?<=\.) What was tried|\n/);
    say(`Missing: ${what}, which ${tests} need; ${reason}`);
  } finally {
    clearInterval(progress);
  }
}

function secondsSince(startMs: number): string {
  return ((performance.now() - startMs) / 1_000).toFixed(0);
}

async function provideInTurn<T extends string>(
  kind: string,
  tests: string,
  names: readonly T[],
  make: (name: T) => Promise<unknown>,
): Promise<void> {
  for (const name of names) await provide(`${kind} ${name}`, tests, () => make(name));
}

// Go uses every processor for one program; Python and npm wait for the network.
await Promise.all([
  provide('Temporal and MinIO', 'integration and acceptance tests', () =>
    ensureBinaries({ env: process.env, log: say }),
  ).then(() =>
    GO === undefined
      ? undefined
      : provideInTurn(
          'the program',
          'tests of the proxy, the workflows and the chart (deployment)',
          ['caddy', 'actionlint', 'helm'],
          goProgram,
        ),
  ),
  systemPython().then((python) =>
    python === null
      ? undefined
      : provideInTurn(
          'the Python environment',
          'tests of the Python client, the documents and schemas',
          Object.keys(PYTHON_PACKAGES) as (keyof typeof PYTHON_PACKAGES)[],
          pythonEnvironment,
        ),
  ),
  provide('the oldest Node.js', 'tests of quick starts and commands', provideOldestNode),
]);
if (performance.now() - begin > 5_000) say(`What the tests need is there (${secondsSince(begin)} s).`);
