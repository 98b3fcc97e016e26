import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const MAIN = fileURLToPath(new URL('../../../../src/main.ts', import.meta.url));

const SAY_CACHE = `data:text/javascript,
import { getCompileCacheDir } from 'node:module';
process.on('exit', () => process.stdout.write(String(getCompileCacheDir() !== undefined)));`;

/** Whether a command keeps what Node.js compiles for the next one. Without settings none does more than begin. */
function usesCache(command: string): string {
  const args = ['--import', SAY_CACHE, MAIN, command];
  return spawnSync(process.execPath, args, { env: { PATH: process.env.PATH }, encoding: 'utf8' }).stdout;
}

test('what runs on holds no cache of compiled code in memory, which commands have to begin at once', () => {
  const used = ['api', 'worker', 'all', 'run', 'migrate'].map((command) => [command, usesCache(command)]);
  expect(Object.fromEntries(used)).toEqual({
    api: 'false',
    worker: 'false',
    all: 'false',
    run: 'false',
    migrate: 'true',
  });
});
