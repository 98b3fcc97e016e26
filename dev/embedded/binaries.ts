import {
  accessSync,
  constants,
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { chmod, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, delimiter, join, resolve } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { EnvHttpProxyAgent, fetch } from 'undici';
import { type BinarySource, binarySources } from './binary-sources.ts';
import { acquireLock, type ExclusiveLock, LockHeldError } from './exclusive-lock.ts';
import { runCommand } from './run-command.ts';

interface BinaryOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: (line: string) => void;
  readonly sources?: readonly BinarySource[];
}

/** No way to a server's program worked. The message names all that was tried. */
export class BinaryUnavailableError extends Error {
  override readonly name = 'BinaryUnavailableError';
}

const PROGRESS_INTERVAL_MS = 10_000;
const BUILD_TIMEOUT_MS = 30 * 60_000;

/**
 * The programs of Temporal and MinIO: environment variable, PATH, the user's cache, official download,
 * `go install`, in this order; the last two fill the cache. Throws BinaryUnavailableError.
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
  const { env } = options;
  const set = env[source.variable]?.trim();
  if (set !== undefined && set !== '') {
    if (isExecutable(set)) return resolve(set);
    throw new BinaryUnavailableError(`${source.variable} is set, but ${set} is not an executable file.`);
  }
  const cached = join(cacheDirectory(env), executableName(source.name));
  return findOnPath(source.name, env) ?? (isExecutable(cached) ? cached : fillCache(source, cached, options));
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

async function obtain(source: BinarySource, work: string, options: BinaryOptions): Promise<string> {
  const { log } = options;
  const problems: string[] = [];
  log(`${source.name} is not here yet; trying ${source.download?.url ?? 'to build it'}`);
  try {
    return await downloadBinary(source, work, log);
  } catch (error) {
    problems.push(`download ${source.download?.url ?? ''}: ${(error as Error).message}`);
  }
  log(`${source.name} cannot be downloaded (${problems[0]?.split(': ').at(-1)}); building it with Go`);
  try {
    return await buildWithGo(source, work, options);
  } catch (error) {
    problems.push(`go install ${source.goPackage}: ${(error as Error).message}`);
  }
  throw new BinaryUnavailableError(
    [
      `${source.name} is needed, and no way to it worked:`,
      `  - environment variable ${source.variable}: not set`,
      `  - PATH: no program ${source.name}`,
      `  - cache ${cacheDirectory(options.env)}: empty`,
      ...problems.map((problem) => `  - ${problem}`),
      `Install ${source.name} and put it on PATH, or set ${source.variable} to the file.`,
    ].join('\n'),
  );
}

async function buildWithGo(source: BinarySource, work: string, { env, log }: BinaryOptions): Promise<string> {
  const go = findOnPath('go', env) ?? ['/usr/local/go/bin/go'].find(isExecutable);
  if (go === undefined) throw new Error('Go is not installed');
  const begin = Date.now();
  const progress = setInterval(() => {
    log(
      `building ${source.name} with go install (takes minutes): ${Math.round((Date.now() - begin) / 1000)} s`,
    );
  }, PROGRESS_INTERVAL_MS);
  const { code, output } = await runCommand(
    [go, 'install', '-trimpath', '-ldflags=-s -w', source.goPackage],
    {
      env: { ...env, GOBIN: work, CGO_ENABLED: '0', GOFLAGS: '-mod=mod' },
      cwd: work,
      timeoutMs: BUILD_TIMEOUT_MS,
    },
  ).finally(() => clearInterval(progress));
  // Go names a program after its folder.
  const [folder = ''] = source.goPackage.split('@');
  const built = join(work, executableName(basename(folder)));
  if (code === 0 && isExecutable(built)) return built;
  const lastLines = output.trim().split('\n').slice(-5).join('\n      ');
  throw new Error(`exit code ${code}\n      ${lastLines}`);
}

async function waitForLock(path: string, onWait: () => void): Promise<ExclusiveLock> {
  for (let attempt = 0; ; attempt++) {
    try {
      return acquireLock(path);
    } catch (error) {
      if (!(error instanceof LockHeldError)) throw error;
      if (attempt % 20 === 0) onWait();
      await delay(500);
    }
  }
}

function cacheDirectory(env: BinaryOptions['env']): string {
  const home = env.HOME ?? homedir();
  const standard = process.platform === 'darwin' ? join(home, 'Library', 'Caches') : join(home, '.cache');
  return join(env.XDG_CACHE_HOME || standard, 'heliograph', 'bin');
}

function findOnPath(name: string, env: BinaryOptions['env']): string | undefined {
  return (env.PATH ?? '')
    .split(delimiter)
    .filter((directory) => directory !== '')
    .map((directory) => resolve(directory, executableName(name)))
    .find(isExecutable);
}

function executableName(name: string): string {
  return process.platform === 'win32' ? `${name}.exe` : name;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

const CONNECT_TIMEOUT_MS = 4_000;
const IDLE_TIMEOUT_MS = 30_000;
const PROGRESS_EVERY_BYTES = 20_000_000;

/**
 * Fetches a server's official build into `directory`, which is empty; returns the path of the executable.
 * Throws with a reason in a few words, soon when there is no network.
 */
async function downloadBinary(
  source: BinarySource,
  directory: string,
  log: (line: string) => void,
): Promise<string> {
  if (source.download === undefined) throw new Error(`none for ${process.platform} ${process.arch}`);
  const { url, isTarGz } = source.download;
  const target = join(directory, isTarGz ? `${source.name}.tar.gz` : source.name);
  const agent = new EnvHttpProxyAgent({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: IDLE_TIMEOUT_MS,
    bodyTimeout: IDLE_TIMEOUT_MS,
  });
  try {
    await save(url, agent, target, (progress) => log(`downloading ${source.name}: ${progress}`));
  } catch (error) {
    throw new Error(reason(error));
  } finally {
    await agent.close().catch(() => undefined);
  }
  const executable = join(directory, source.name);
  if (isTarGz) await extract(target, source.name, directory);
  await chmod(executable, 0o755);
  return executable;
}

async function save(
  url: string,
  dispatcher: EnvHttpProxyAgent,
  target: string,
  onProgress: (text: string) => void,
): Promise<void> {
  const response = await fetch(url, { dispatcher });
  if (!response.ok || response.body === null) throw new Error(`HTTP status ${response.status}`);
  const totalBytes = Number(response.headers.get('content-length') ?? 0);
  onProgress(totalBytes > 0 ? `${megabytes(totalBytes)} MB` : 'started');
  const counted = countBytes((sizeBytes) =>
    onProgress(`${megabytes(sizeBytes)}${totalBytes > 0 ? ` of ${megabytes(totalBytes)}` : ''} MB`),
  );
  await pipeline(Readable.fromWeb(response.body), counted, createWriteStream(target));
}

/** Passes bytes on and tells their number every 20 MB. */
function countBytes(tell: (sizeBytes: number) => void): Transform {
  let sizeBytes = 0;
  let told = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      sizeBytes += chunk.length;
      if (sizeBytes - told >= PROGRESS_EVERY_BYTES) {
        told = sizeBytes;
        tell(sizeBytes);
      }
      done(null, chunk);
    },
  });
}

async function extract(archive: string, name: string, directory: string): Promise<void> {
  const { code, output } = await runCommand(['tar', '-xzf', archive, '-C', directory, name]);
  await rm(archive, { force: true });
  if (code !== 0) throw new Error(`the archive cannot be unpacked: ${output.trim() || `exit code ${code}`}`);
}

/** fetch hides the reason behind "fetch failed". */
function reason(error: unknown): string {
  const { cause, message } = error as Error & { cause?: { code?: string; message?: string } };
  return cause?.code ?? cause?.message ?? message;
}

function megabytes(sizeBytes: number): string {
  return (sizeBytes / 1_000_000).toFixed(0);
}
