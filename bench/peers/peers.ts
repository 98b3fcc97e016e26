import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { acceptsConnections, findFreePorts } from '../../dev/embedded/ports.ts';
import { findOnPath } from '../../dev/embedded/programs.ts';
import { type Child, startChild } from '../child-process.ts';
import type { PeerName } from '../scenarios.ts';
import { startBenchPart } from '../stack/bench-part.ts';
import { APP_SECRET } from '../stack/settings.ts';
import type { Stack } from '../stack/stack.ts';

type PeerProtocol = {
  /** Gives the port at which upstream's webhooks are taken. */
  listen: {
    argument: {
      name: PeerName;
      appSecret: string;
      databaseUrl: string;
      redisPort: number;
      receiverUrl: string;
    };
    result: number;
  };
};

/** A peer that runs: where it takes webhooks, and the processes that it is made of beside PostgreSQL. */
export type Peer = { port: number; pids: number[]; stop(): Promise<void> };

const PACKAGES = fileURLToPath(new URL('.', import.meta.url));
const DATABASE = 'bench_peers';

/**
 * Starts one of the peers on the PostgreSQL of the benchmark, or on a Redis that has each write on disk before it answers.
 * Throws when a program or a package cannot be had; the message says what to install.
 */
export async function startPeer(
  name: PeerName,
  { databaseUrl, database }: Pick<Stack, 'databaseUrl' | 'database'>,
  receiverUrl: string,
  onCrash: (error: Error) => void,
): Promise<Peer> {
  await installPackages();
  const redis = name === 'bullmq' ? await startRedis(onCrash) : null;
  let child: Child<PeerProtocol> | null = null;
  const stop = async () => {
    await child?.stop();
    await redis?.stop();
  };
  try {
    if (redis === null) await database.raw(`create database ${DATABASE}`);
    const ownUrl = new URL(databaseUrl);
    ownUrl.pathname = `/${DATABASE}`;
    child = startChild<PeerProtocol>(new URL('server-process.js', import.meta.url), onCrash);
    const places = { databaseUrl: ownUrl.href, redisPort: redis?.port ?? 0, receiverUrl };
    const port = await child.ask('listen', { name, appSecret: APP_SECRET, ...places });
    return { port, pids: [child.pid, ...(redis === null ? [] : [redis.pid])], stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** They are the benchmark's own: who installs the product does without them. */
async function installPackages(): Promise<void> {
  const installed = timeOf('node_modules/.package-lock.json');
  if (installed >= Math.max(timeOf('package-lock.json'), timeOf('package.json'))) return;
  await promisify(execFile)('npm', ['ci', '--no-audit', '--no-fund'], { cwd: PACKAGES });
}

function timeOf(file: string): number {
  return statSync(join(PACKAGES, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

async function startRedis(onCrash: (error: Error) => void) {
  const program = findOnPath('redis-server', process.env);
  if (program === undefined)
    throw new Error('there is no redis-server on PATH: install it (Debian: apt-get install redis-server)');
  const [port = 0] = await findFreePorts(1);
  const folder = await mkdtemp(join(tmpdir(), 'heliograph-bench-redis-'));
  const options = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', ''];
  const part = {
    name: 'redis-server',
    command: program,
    args: [...options, '--appendonly', 'yes', '--appendfsync', 'always'],
    env: { PATH: process.env.PATH },
    logFile: join(folder, 'redis.log'),
    stopSignal: 'SIGTERM' as const,
    stopGraceMs: 5_000,
    isReady: () => acceptsConnections('127.0.0.1', port),
  };
  const remove = () => rm(folder, { recursive: true, force: true });
  const { pid, stop } = await startBenchPart(part, onCrash).catch(async (error: unknown) => {
    await remove();
    throw error;
  });
  const stopAndRemove = async () => {
    await stop();
    await remove();
  };
  return { port, pid, stop: stopAndRemove };
}
