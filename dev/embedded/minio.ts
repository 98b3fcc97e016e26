import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { keptSecret } from './kept-files.ts';
import { answersOk } from './ports.ts';
import { minimalEnvironment } from './run-command.ts';
import type { Supervisor } from './supervisor.ts';

interface MinioOptions {
  readonly binary: string;
  readonly dataDir: string;
  readonly logFile: string;
  /** 127.0.0.1 unless told. */
  readonly host?: string;
  readonly port: number;
  readonly consolePort: number;
  /** Variables of the server beside those that every one gets. */
  readonly env?: Readonly<Record<string, string>>;
}

/** What opens both the object store and its console. */
export interface MinioCredentials {
  readonly accessKey: string;
  readonly secretKey: string;
}

/** Made at the first start and kept beside the objects. */
export function minioCredentials(dataDir: string): MinioCredentials {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  return { accessKey: 'heliograph', secretKey: keptSecret(join(dataDir, 'secret-key'), 24) };
}

/** Starts MinIO on a directory. */
export async function startMinio(supervisor: Supervisor, options: MinioOptions): Promise<MinioCredentials> {
  const objects = join(options.dataDir, 'objects');
  mkdirSync(objects, { recursive: true, mode: 0o700 });
  const credentials = minioCredentials(options.dataDir);
  const host = options.host ?? '127.0.0.1';
  const address = `${host}:${options.port}`;
  await supervisor.start({
    name: 'minio',
    command: options.binary,
    args: ['server', objects, '--address', address, '--console-address', `${host}:${options.consolePort}`],
    env: minimalEnvironment({
      MINIO_ROOT_USER: credentials.accessKey,
      MINIO_ROOT_PASSWORD: credentials.secretKey,
      MINIO_UPDATE: 'off',
      MINIO_CALLHOME_ENABLE: 'off',
      ...options.env,
    }),
    logFile: options.logFile,
    stopSignal: 'SIGTERM',
    stopGraceMs: 10_000,
    isServer: true,
    // "ready" is said before buckets can be asked for.
    isReady: () => answersOk(`http://${address}/minio/health/cluster`),
  });
  return credentials;
}
