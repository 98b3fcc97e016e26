import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

const SCRIPT = `
  import { readdirSync, readFileSync } from 'node:fs';
  import { getPriority } from 'node:os';
  import { lowerHelperThreads } from './src/platform/helper-threads.ts';
  lowerHelperThreads();
  const threads = readdirSync('/proc/self/task').map((id) => {
    const name = readFileSync('/proc/self/task/' + id + '/comm', 'utf8').trim();
    return { name, niceness: getPriority(Number(id)) };
  });
  console.log(JSON.stringify(threads));
`;

test.skipIf(process.platform !== 'linux')(
  'the helper threads of V8 give way to all other threads of a process',
  () => {
    const output = execFileSync(process.execPath, ['--input-type=module', '--eval', SCRIPT], {
      encoding: 'utf8',
    });
    const threads: { name: string; niceness: number }[] = JSON.parse(output);
    const usual = threads.find(({ name }) => !name.startsWith('V8Worker'))?.niceness ?? 0;
    const helpers = threads.filter(({ name }) => name.startsWith('V8Worker'));
    expect(helpers.length).toBeGreaterThan(0);
    for (const { niceness } of helpers) expect(niceness).toBe(5);
    const others = threads.filter(({ name }) => !name.startsWith('V8Worker'));
    for (const { niceness } of others) expect(niceness).toBe(usual);
  },
);
