import { randomInt } from 'node:crypto';
import { connect, createServer } from 'node:net';

/** Order matters: it is the offset from HELIOGRAPH_EMBEDDED_PORT_BASE. */
const PORTS = {
  api: { fallback: 8080, variable: 'HELIOGRAPH_EMBEDDED_API_PORT', about: 'the API' },
  https: { fallback: 8443, variable: 'HELIOGRAPH_EMBEDDED_HTTPS_PORT', about: 'the API over https' },
  temporal: { fallback: 7233, variable: 'HELIOGRAPH_EMBEDDED_TEMPORAL_PORT', about: 'Temporal' },
  temporalUi: { fallback: 8233, variable: 'HELIOGRAPH_EMBEDDED_TEMPORAL_UI_PORT', about: 'the Temporal UI' },
  postgres: { fallback: 5433, variable: 'HELIOGRAPH_EMBEDDED_POSTGRES_PORT', about: 'PostgreSQL' },
  minio: { fallback: 9000, variable: 'HELIOGRAPH_EMBEDDED_MINIO_PORT', about: 'MinIO' },
  minioConsole: {
    fallback: 9001,
    variable: 'HELIOGRAPH_EMBEDDED_MINIO_CONSOLE_PORT',
    about: 'the MinIO console',
  },
  sandbox: { fallback: 8090, variable: 'HELIOGRAPH_EMBEDDED_SANDBOX_PORT', about: 'the sandbox upstream' },
  receiver: { fallback: 8091, variable: 'HELIOGRAPH_EMBEDDED_RECEIVER_PORT', about: 'the sample tenant' },
  workerHealth: {
    fallback: 8092,
    variable: 'HELIOGRAPH_EMBEDDED_WORKER_HEALTH_PORT',
    about: "the worker's health and metrics",
  },
  apiMetrics: {
    fallback: 8093,
    variable: 'HELIOGRAPH_EMBEDDED_API_METRICS_PORT',
    about: "the API's metrics",
  },
} as const;

const PORT_BASE = 'HELIOGRAPH_EMBEDDED_PORT_BASE';

export type PortName = keyof typeof PORTS;
export type EmbeddedPorts = Readonly<Record<PortName, number>>;
/** The ports of the three servers alone. */
export type InfrastructurePorts = Pick<
  EmbeddedPorts,
  'temporal' | 'temporalUi' | 'postgres' | 'minio' | 'minioConsole'
>;

/** A port setting is wrong, or a port is taken. The message names port, part and variable. */
class PortError extends Error {
  override readonly name = 'PortError';
}

const PORT_NAMES = Object.keys(PORTS) as PortName[];

/** The ports of the embedded stack as the environment sets them. Throws PortError. */
export function readPorts(env: Readonly<Record<string, string | undefined>>): EmbeddedPorts {
  const base = readPort(env, PORT_BASE);
  const ports = PORT_NAMES.map((name, offset): [PortName, number] => {
    const { fallback, variable } = PORTS[name];
    return [name, readPort(env, variable) ?? (base === undefined ? fallback : base + offset)];
  });
  for (const [name, port] of ports) {
    if (port > 65_535)
      throw new PortError(`${PORT_BASE} is too high: ${PORTS[name].about} would get port ${port}`);
    const other = ports.find(([otherName, otherPort]) => otherPort === port && otherName !== name);
    if (other !== undefined) {
      throw new PortError(`${PORTS[name].about} and ${PORTS[other[0]].about} are both set to port ${port}`);
    }
  }
  return Object.fromEntries(ports) as Record<PortName, number>;
}

/** The variables that give a child process the same ports. */
export function portVariables(ports: EmbeddedPorts): Record<string, string> {
  return Object.fromEntries(PORT_NAMES.map((name) => [PORTS[name].variable, String(ports[name])]));
}

/** Throws PortError, which names every port that cannot be had on 127.0.0.1. */
export async function assertPortsFree(ports: Readonly<Partial<Record<PortName, number>>>): Promise<void> {
  const problems: string[] = [];
  for (const name of PORT_NAMES) {
    const port = ports[name];
    const reason = port === undefined ? undefined : await reasonNotFree(port);
    const { about, variable } = PORTS[name];
    if (reason !== undefined)
      problems.push(`Port ${port} for ${about} ${reason}; set ${variable} to another.`);
  }
  if (problems.length > 0)
    throw new PortError([...problems, `Or move all ports: ${PORT_BASE}=18080 npm start`].join('\n'));
}

/** Systems give outgoing connections ports from 32,768 (Linux) or 49,152 on: these are not theirs. */
const FREE_PORTS = { from: 10_000, to: 32_767 };

/** As many different free ports of 127.0.0.1; nothing reserves them once this returns. */
export async function findFreePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(FREE_PORTS.from, FREE_PORTS.to);
    if ((await reasonNotFree(port)) === undefined) ports.add(port);
  }
  return [...ports];
}

function readPort(env: Readonly<Record<string, string | undefined>>, variable: string): number | undefined {
  const text = env[variable]?.trim();
  if (text === undefined || text === '') return undefined;
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535) {
    throw new PortError(`${variable} must be a port from 1 to 65535`);
  }
  return port;
}

async function reasonNotFree(port: number): Promise<string | undefined> {
  try {
    const server = await listen(port);
    await new Promise((resolve) => server.close(resolve));
    return undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') return 'is taken by another program';
    return code === 'EACCES' ? 'may not be opened by this user' : `cannot be opened (${code})`;
  }
}

function listen(port: number): Promise<ReturnType<typeof createServer>> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => resolve(server));
  });
}

/** Whether a GET answers 200 within two seconds; for readiness probes. */
export async function answersOk(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000), redirect: 'manual' });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
}

/** Whether somebody listens there. */
export async function acceptsConnections(host: string, port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 1_000 });
    const end = (isOpen: boolean) => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once('connect', () => end(true));
    for (const event of ['error', 'timeout']) socket.once(event, () => end(false));
  });
}
