import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { generate } from 'selfsigned';
import { type Run, runIn } from './docker.ts';

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));

export const PUBLIC_HOST = 'gateway.test';
export const APP_SECRET = 'stack-test-app-secret-0123456789';
/** An installation beside others: its name, its network behind the proxy, its Compose file and what is put on top of it. */
type Place = { project: string; subnet: string; file?: string; overlay: string };

/** Unlike those of an installation that may run here. */
const STACK: Place = {
  project: 'heliograph-stack',
  subnet: '10.214.68.0/24',
  overlay: 'test/stack/compose.yml',
};

export type Installation = {
  folder: string;
  run: Run;
  compose: (...args: string[]) => Promise<string>;
  /** The command line for operators, in the API's container as the documents say. */
  admin: (args: readonly string[], input?: string) => Promise<string>;
  httpsPort: number;
  peerUrl: string;
  storeUrl: () => string;
  remove(): Promise<void>;
};

/** A copy of this checkout in which an operator has followed docs/operators/operations.md, nothing started yet. */
export async function prepareInstallation({
  project,
  subnet,
  file = 'docker-compose.yml',
  overlay,
}: Place = STACK): Promise<Installation> {
  const folder = mkdtempSync(join(tmpdir(), 'heliograph-stack-'));
  const files = await runIn(CHECKOUT, {})('git', [
    'ls-files',
    '-z',
    '--cached',
    '--others',
    '--exclude-standard',
  ]);
  for (const path of files.split('\0').filter((name) => name !== '')) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(CHECKOUT, path), join(folder, path));
  }
  const run = runIn(folder, { COMPOSE_PROJECT_NAME: project });
  await run('sh', ['deploy/prepare.sh']);
  const [https, http, local, ui, peer, store] = await freePorts(6);
  append(join(folder, '.env'), {
    COMPOSE_FILE: `${file}:${overlay}`,
    EDGE_SUBNET: subnet,
    PROXY_HTTPS_LISTEN: `127.0.0.1:${https}`,
    PROXY_HTTP_LISTEN: `127.0.0.1:${http}`,
    PROXY_LOCAL_LISTEN: `127.0.0.1:${local}`,
    TEMPORAL_UI_LISTEN: `127.0.0.1:${ui}`,
    PEER_PORT: String(peer),
    STORE_PORT: String(store),
  });
  append(join(folder, 'heliograph.env'), {
    HELIOGRAPH_PUBLIC_URL: `https://${PUBLIC_HOST}`,
    HELIOGRAPH_TRUST_PROXY: subnet,
    HELIOGRAPH_UPSTREAM_GRAPH_URL: 'https://graph.test',
    HELIOGRAPH_UPSTREAM_MEDIA_HOSTS: 'files.test',
    HELIOGRAPH_WEBHOOK_ALLOW_CIDRS: '172.16.0.0/12,192.168.0.0/16,10.0.0.0/8',
    HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS: '1,1,2,2,5,5,5,5,5,5,10,10,10',
    NODE_EXTRA_CA_CERTS: '/run/ca.pem',
  });
  writeFileSync(join(folder, 'secrets/app-secrets'), APP_SECRET);
  await writeCertificate(folder);
  const compose = (...args: string[]) => run('docker', ['compose', ...args]);
  // What an interrupted run left has other passwords.
  await compose('down', '--volumes', '--timeout', '5');
  return {
    folder,
    run,
    compose,
    admin: (args, input) =>
      run('docker', ['compose', 'exec', '-T', 'api', 'node', 'src/main.ts', 'admin', ...args], input),
    httpsPort: https ?? 0,
    peerUrl: `http://127.0.0.1:${peer}`,
    storeUrl: () => {
      const password = readFileSync(join(folder, 'secrets/object-store-root-password'), 'utf8');
      return `http://root:${password}@127.0.0.1:${store}`;
    },
    remove: async () => {
      await compose('down', '--volumes', '--timeout', '5');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** What comes later in such a file counts. */
export function append(path: string, values: Record<string, string>): void {
  const lines = Object.entries(values).map(([name, value]) => `${name}=${value}`);
  writeFileSync(path, `${readFileSync(path, 'utf8')}\n${lines.join('\n')}\n`);
}

/** For the stand-ins of the world outside; it is its own authority. */
async function writeCertificate(folder: string): Promise<void> {
  const names = ['graph.test', 'files.test', 'tenant.test'].map((value) => ({ type: 2, value }) as const);
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'peer' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    notBeforeDate: new Date(Date.now() - 86_400_000),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'subjectAltName', altNames: names },
    ],
  });
  writeFileSync(join(folder, 'tls/peer.pem'), cert);
  // The container reads it as a user of its own.
  writeFileSync(join(folder, 'tls/peer-key.pem'), key, { mode: 0o644 });
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => new Promise((resolve) => server.once('listening', resolve))));
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** Names of the containers of a service. */
export async function containersOf({ compose }: Installation, service: string): Promise<string[]> {
  return (await compose('ps', '--format', '{{.Name}}', service)).split('\n').filter((name) => name !== '');
}

/** Waits until every container that should run does, and those with a health check are well. */
export async function untilHealthy({ compose }: Installation, timeoutMs: number): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const states = (await compose('ps', '--format', '{{.Name}} {{.State}} {{.Health}}')).trim().split('\n');
    const bad = states.filter((state) => !/ running (healthy)?$/.test(state));
    if (bad.length === 0 && states.length >= 5) return;
    if (Date.now() > deadline) throw new Error(`not well in time:\n${bad.join('\n')}`);
    await sleep(500);
  }
}

/** The proxy's own authority. */
export async function authorityOf({ compose }: Installation): Promise<string> {
  return await compose('exec', '-T', 'proxy', 'cat', '/data/caddy/pki/authorities/local/root.crt');
}

/** One more migration for a copy of the checkout. It takes a while, in which both versions serve. */
export function addMigration(folder: string): void {
  const path = join(folder, 'src/platform/postgres/migrations/9999-stack-test.sql');
  writeFileSync(path, 'select pg_sleep(5); alter table tenants add column stack_test text;');
}
