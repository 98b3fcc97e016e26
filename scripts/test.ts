import { type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

/**
 * What `npm test` runs after the checks. The acceptance tests share one product, so their files come one after the
 * other, and mostly wait: alone they would leave the processors idle. They run beside all others, and print at the end:
 * little, so that what failed among the others stands above it.
 */
const runs: readonly { args: string[]; stdio: StdioOptions }[] = [
  { args: ['--project', 'unit', '--project', 'integration'], stdio: 'inherit' },
  { args: ['--project', 'acceptance', '--reporter', 'dot'], stdio: ['ignore', 'pipe', 'inherit'] },
];

// What is asked for may be in one of them only.
const options = process.argv.length > 2 ? [...process.argv.slice(2), '--passWithNoTests'] : [];

const ends = runs.map(async ({ args, stdio }) => {
  const child = spawn('vitest', ['run', ...args, ...options], { stdio });
  const printed = child.stdout === null ? '' : text(child.stdout);
  const [code] = await once(child, 'exit');
  return { code: (code as number | null) ?? 1, printed: await printed };
});

// Both get the signal of the terminal too, and end what they started.
process.on('SIGINT', () => {});
const results = await Promise.all(ends);
process.stdout.write(results.map(({ printed }) => printed).join(''));
process.exitCode = Math.max(...results.map(({ code }) => code));
