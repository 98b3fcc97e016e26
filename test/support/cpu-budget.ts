import { createHash } from 'node:crypto';
import { Session } from 'node:inspector/promises';
import { cpuMsOf } from './long-texts.ts';

/** The least of CPU that the fixed work took in 160 tries, once compiled, on the machine on which the budgets were set. */
const NOMINAL_MS = 19;
const PIECE = 'x'.repeat(4_096);

/** As the work that is measured does: strings, objects, native code. */
async function fixedWork(): Promise<void> {
  for (let round = 0; round < 10; round += 1) {
    JSON.parse(
      JSON.stringify(Array.from({ length: 4_000 }, (_, n) => ({ [`name${n % 50}`]: n, text: 'abc' }))),
    );
    for (let hashes = 0; hashes < 20; hashes += 1) createHash('sha256').update(PIECE).digest('hex');
  }
}

let factor = 0;

/** How much slower this machine is than the one on which budgets were set, for the moment; never less than 1. */
async function slowness(): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  // The first runs compile.
  const most = factor === 0 ? 10 : 3;
  for (let tries = 0; tries < most; tries += 1) least = Math.min(least, await cpuMsOf(fixedWork));
  return Math.max(1, least / NOMINAL_MS);
}

const TRIES = 6;

/**
 * Does some work until it keeps to a budget of CPU time, a few times at most: the first run compiles, and the process
 * collects garbage and is slowed down by others in between. Returns the least that it took, in milliseconds of a machine
 * that is as fast as the one on which budgets were set.
 */
export async function leastCpuMs(work: () => Promise<unknown>, budgetMs: number): Promise<number> {
  if (factor === 0) factor = await slowness();
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < TRIES; tries += 1) {
    least = Math.min(least, (await cpuMsOf(work)) / factor);
    if (least <= budgetMs) break;
    factor = await slowness();
  }
  return Math.round(least * 10) / 10;
}

const SAMPLING = {
  samplingInterval: 32 * 1024,
  includeObjectsCollectedByMajorGC: true,
  includeObjectsCollectedByMinorGC: true,
};

/** How many bytes of objects and texts some work allocates, with those that it lets go at once; an estimate by samples. */
export async function allocatedBy(work: () => Promise<unknown>): Promise<number> {
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.startSampling', SAMPLING);
  await work();
  const { profile } = await session.post('HeapProfiler.stopSampling');
  session.disconnect();
  return sizeOf(profile.head);
}

type Node = { selfSize: number; children: Node[] };

function sizeOf({ selfSize, children }: Node): number {
  return children.reduce((sum, child) => sum + sizeOf(child), selfSize);
}
