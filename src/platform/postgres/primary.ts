import pg from 'pg';
import type { DatabaseHost } from './database-url.ts';

export type TargetConfig = pg.ClientConfig & {
  /** Those of which the one is wanted that takes writes; none: `host` is. */
  hosts: readonly DatabaseHost[];
};

/** A host that hangs must not keep the others' answer waiting. */
const PROBE_MS = 3_000;

/** Connections that are opened side by side look once. */
const KEEP_MS = 1_000;

/** No host answered that it takes writes; with the SQLSTATE of a server that cannot take connections now. */
class NoPrimaryError extends Error {
  readonly code = '57P03';
  constructor(causes: readonly unknown[]) {
    const reasons = causes.map((cause) => (cause instanceof Error ? cause.message : String(cause)));
    super(`no host of the database takes writes: ${reasons.join('; ')}`);
    this.name = 'NoPrimaryError';
  }
}

const found = new Map<string, { atMs: number; host: Promise<DatabaseHost> }>();

/**
 * The host that takes writes, as `target_session_attrs=read-write` of PostgreSQL's own libraries finds it, but with all
 * of them asked at the same time: after a fail-over the old one may not answer for long. Null: there is no choice.
 */
export async function findPrimary(config: TargetConfig): Promise<DatabaseHost | null> {
  if (config.hosts.length === 0) return null;
  const key = JSON.stringify(config.hosts);
  const known = found.get(key);
  if (known !== undefined && performance.now() - known.atMs < KEEP_MS) return await known.host;
  const host = Promise.any(config.hosts.map((each) => probe(config, each))).catch((error: AggregateError) => {
    found.delete(key);
    throw new NoPrimaryError(error.errors);
  });
  found.set(key, { atMs: performance.now(), host });
  return await host;
}

async function probe(config: TargetConfig, host: DatabaseHost): Promise<DatabaseHost> {
  const client = new pg.Client({
    ...config,
    ...host,
    // The pool hides it from copies.
    password: config.password,
    connectionTimeoutMillis: PROBE_MS,
    query_timeout: PROBE_MS,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query('show transaction_read_only');
    if (rows[0]?.transaction_read_only === 'off') return host;
    throw new Error(`${host.host}:${host.port} is read-only`);
  } finally {
    void client.end().catch(() => undefined);
  }
}

/** The driver's client, which looks for the host that takes writes before it connects. */
export class DatabaseClient extends pg.Client {
  readonly #config: TargetConfig;

  constructor(config: TargetConfig) {
    super(config);
    this.#config = config;
    // The server can end a connection in the packet that says it is ready, before the pool listens; the next user gets the error.
    this.on('error', () => {});
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
    if (this.#config.hosts.length === 0) return this.#connect(callback);
    const finding = findPrimary(this.#config).then((host) => {
      // Given up meanwhile.
      if (this.#isDestroyed()) throw new Error('timeout exceeded when trying to connect');
      Object.assign(this, host);
    });
    if (callback === undefined) return finding.then(() => super.connect());
    finding.then(() => super.connect(callback), callback);
    return undefined;
  }

  #connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
    if (callback === undefined) return super.connect();
    super.connect(callback);
    return undefined;
  }

  #isDestroyed(): boolean {
    return (this as unknown as { connection: { stream: { destroyed: boolean } } }).connection.stream
      .destroyed;
  }
}

export function openPool(config: TargetConfig & pg.PoolConfig): pg.Pool {
  // The pool gives each of its clients the options that it got itself.
  return new pg.Pool({ ...config, Client: DatabaseClient as unknown as new () => pg.Client });
}
