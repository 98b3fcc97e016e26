import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { acceptsConnections } from '../../dev/embedded/ports.ts';
import type { PartDefinition } from '../../dev/embedded/process-part.ts';
import { minimalEnvironment } from '../../dev/embedded/run-command.ts';
import type { Machine } from './machines.ts';

const GLOBAL = `global
  maxconn 4096
  tune.bufsize 65536
defaults
  timeout connect 1s
  timeout check 1s
  timeout client 60s
  option redispatch 1
  retries 3
`;

/** Health by /readyz, which an API answers with 503 before it stops. What an API did not answer is asked of another. */
const PUBLIC = (apis: readonly Machine[]) => `${GLOBAL}
frontend public
  bind :8080
  mode http
  timeout http-request 10s
  default_backend apis
backend apis
  mode http
  balance leastconn
  timeout server 10s
  option httpchk GET /readyz
  http-check expect status 200
  retry-on conn-failure empty-response response-timeout 502 503 504
  default-server check inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
${apis.map(({ name, address }) => `  server ${name} ${address}:8080`).join('\n')}
`;

/** The frontends of Temporal behind one address, as a service of Kubernetes or a balancer of a cloud gives one. */
const TEMPORAL = (nodes: readonly Machine[]) => `${GLOBAL}
listen temporal
  bind :7233
  mode tcp
  balance leastconn
  timeout client 1h
  timeout server 1h
  option clitcpka
  default-server check inter 500ms fall 3 rise 2 on-marked-down shutdown-sessions
${nodes.map(({ name, address }) => `  server ${name} ${address}:7233`).join('\n')}
`;

type ProxyOptions = {
  haproxy: string;
  dataDir: string;
  logDir: string;
  machine: Machine;
  behind: readonly Machine[];
};

/** The proxy before the APIs; SIGUSR2 makes it start anew without refusing anybody. */
export function publicProxy(options: ProxyOptions): PartDefinition {
  return proxyPart(options, PUBLIC(options.behind), 8080);
}

/** The balancer before the Temporal nodes. */
export function temporalBalancer(options: ProxyOptions): PartDefinition {
  return proxyPart(options, TEMPORAL(options.behind), 7233);
}

function proxyPart(
  { haproxy, dataDir, logDir, machine }: ProxyOptions,
  text: string,
  port: number,
): PartDefinition {
  mkdirSync(dataDir, { recursive: true });
  const file = join(dataDir, `${machine.name}.cfg`);
  writeFileSync(file, text);
  return {
    name: machine.name,
    launcher: machine.launcher,
    command: haproxy,
    args: ['-W', '-f', file],
    env: minimalEnvironment(),
    logFile: join(logDir, `${machine.name}.log`),
    stopSignal: 'SIGTERM',
    stopGraceMs: 5_000,
    isReady: () => acceptsConnections(machine.address, port),
  };
}
