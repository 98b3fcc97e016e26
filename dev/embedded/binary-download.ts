import { createWriteStream } from 'node:fs';
import { chmod, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { EnvHttpProxyAgent, fetch } from 'undici';
import type { BinarySource } from './binary-sources.ts';
import { runCommand } from './run-command.ts';

const CONNECT_TIMEOUT_MS = 4_000;
const IDLE_TIMEOUT_MS = 30_000;
const PROGRESS_EVERY_BYTES = 20_000_000;

/**
 * Fetches a server's official build into `directory`, which is empty; returns the path of the executable.
 * Throws with a reason in a few words, soon when there is no network.
 */
export async function downloadBinary(
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
