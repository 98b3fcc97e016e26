import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Counter, Gauge, type Registry } from '@prometheus-io/client';
import type { Config } from '../config/config.ts';
import type { PoolUse } from '../postgres/connection.ts';
import type { DatabasePool } from '../postgres/database.ts';

export function watchPools(registry: Registry, pools: readonly DatabasePool[]): void {
  const common = (name: string, help: string) => ({
    name: `heliograph_database_pool_${name}`,
    help,
    labelNames: ['pool'],
    registers: [registry],
  });
  const gauge = (name: string, help: string, read: (pool: DatabasePool, use: PoolUse) => number) =>
    new Gauge({
      ...common(name, help),
      collect() {
        for (const pool of pools) this.labels(poolName(pool)).set(read(pool, pool.use()));
      },
    });
  const counter = (name: string, help: string, read: (use: PoolUse) => number) =>
    new Counter({
      ...common(name, help),
      collect() {
        this.reset();
        for (const pool of pools) this.labels(poolName(pool)).inc(read(pool.use()));
      },
    });
  gauge('max', 'Most connections of the pool.', ({ options }) => options.poolMax);
  gauge('open', 'Open connections of the pool.', (_pool, { open }) => open);
  gauge('idle', 'Open connections that nothing uses.', (_pool, { idle }) => idle);
  gauge('waiting', 'Statements that wait for a connection.', (_pool, { waiting }) => waiting);
  counter('waits_total', 'Statements that found no idle connection.', ({ waits }) => waits);
  counter('wait_seconds_total', 'Time that they waited in all.', ({ waitedMs }) => waitedMs / 1_000);
}

function poolName({ options }: DatabasePool): string {
  return options.applicationName.replace(/^heliograph-/, '');
}

export function certificateFiles({ api, temporal }: Pick<Config, 'api' | 'temporal'>): Map<string, string> {
  const files: [string, string][] = [
    ['https', api.httpsPort >= 0 ? api.tlsCertFile : ''],
    ['temporal', temporal.tls?.certFile ?? ''],
  ];
  return new Map(files.filter(([, path]) => path !== ''));
}

/** When the first certificate of a PEM file ends, in milliseconds since 1970; null when that cannot be read. */
export async function certificateEndMs(path: string): Promise<number | null> {
  try {
    return new X509Certificate(await readFile(path)).validToDate.getTime();
  } catch {
    return null;
  }
}

/** Shows when certificates of this process end; the files are read again with each scrape, as they are replaced. */
export function watchCertificates(registry: Registry, files: ReadonlyMap<string, string>): void {
  new Gauge({
    name: 'heliograph_certificate_expiry_timestamp_seconds',
    help: 'When the certificate that this process shows ends; 0: its file cannot be read.',
    labelNames: ['certificate'],
    registers: [registry],
    async collect() {
      for (const [name, path] of files) this.labels(name).set(((await certificateEndMs(path)) ?? 0) / 1_000);
    },
  });
}
