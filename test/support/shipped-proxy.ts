import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { findFreePorts } from '../../dev/embedded/ports.ts';
import { composeService } from '../unit/deployment/compose-file.ts';
import { goProgram } from '../unit/deployment/go-programs.ts';
import { eventually } from './webhook-receiver.ts';

const CADDYFILE = fileURLToPath(new URL('../../deploy/caddy/Caddyfile', import.meta.url));
const MIB = 1024 * 1024;

/** The container's limit of memory in docker-compose.yml. */
export const PROXY_MEMORY_BYTES =
  Number(/^(\d+)m$/.exec(composeService('proxy').deploy?.resources?.limits?.memory ?? '')?.[1]) * MIB;

export type ShippedProxy = {
  /** Plain http, as on the machine itself. */
  httpPort: number;
  /** https with a certificate of the proxy's own authority. */
  httpsPort: number;
  /** The most memory that the process has had. */
  peakMemoryBytes(): number;
  isRunning(): boolean;
};

/** Starts the proxy of the Compose stack with its own configuration, of which only addresses are others. */
export async function startShippedProxy(apiPort: number): Promise<ShippedProxy> {
  const binary = await goProgram('caddy');
  const directory = mkdtempSync(join(tmpdir(), 'heliograph-proxy-'));
  const [httpPort = 0, httpsPort = 0, redirectPort = 0, operatorPort = 0] = await findFreePorts(4);
  const env = {
    PATH: process.env.PATH,
    HOME: directory,
    XDG_DATA_HOME: directory,
    XDG_CONFIG_HOME: directory,
    HELIOGRAPH_PUBLIC_URL: `https://localhost:${httpsPort}`,
    // Caddy takes nine tenths of its container's memory for this; there is no container here.
    GOMEMLIMIT: String(Math.floor(PROXY_MEMORY_BYTES * 0.9)),
  };
  const adapt = ['adapt', '--config', CADDYFILE, '--adapter', 'caddyfile'];
  const shipped = execFileSync(binary, adapt, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const ports = { ':8080': httpPort, ':8090': operatorPort };
  const config = join(directory, 'config.json');
  writeFileSync(config, JSON.stringify(withAddresses(JSON.parse(shipped), { ports, redirectPort, apiPort })));
  const child = spawn(binary, ['run', '--config', config], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.on('data', (chunk) => {
    log = (log + String(chunk)).slice(-10_000);
  });
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  onTestFinished(() => {
    child.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });
  await eventually('the proxy answers', async () => {
    if (!isRunning()) throw new Error(`the proxy has ended: ${log}`);
    const answer = await fetch(`http://127.0.0.1:${httpPort}/healthz`).catch(() => null);
    return answer?.status === 200;
  });
  const peakMemoryBytes = () =>
    Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) * 1024;
  return { httpPort, httpsPort, peakMemoryBytes, isRunning };
}

type CaddyConfig = {
  apps: { http: { http_port?: number; servers: Record<string, { listen: string[] }> } };
};

type Addresses = { ports: Readonly<Record<string, number>>; redirectPort: number; apiPort: number };

/** The configuration with ports that are free here, and the API at a port in place of a name of the network. */
function withAddresses(config: CaddyConfig, { ports, redirectPort, apiPort }: Addresses): unknown {
  const { http } = config.apps;
  http.http_port = redirectPort;
  for (const server of Object.values(http.servers))
    server.listen = server.listen.map((address) =>
      address in ports ? `127.0.0.1:${ports[address]}` : address,
    );
  return JSON.parse(JSON.stringify(config), (_key, value) => {
    const { dynamic_upstreams: named, ...handler } = value ?? {};
    return named === undefined ? value : { ...handler, upstreams: [{ dial: `127.0.0.1:${apiPort}` }] };
  });
}
