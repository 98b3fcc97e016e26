import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { freePortBase } from '../../acceptance/support/free-ports.ts';
import { testDatabase } from '../../support/test-database.ts';
import { BUILD_TIMEOUT_MS, GO, goProgram } from '../../unit/deployment/go-programs.ts';
import {
  type Container,
  environmentOf,
  type Manifest,
  MINIMAL,
  objectOf,
  type PodSpec,
  podOf,
  renderChart,
} from '../../unit/deployment/rendered-chart.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** What a kubelet sets in every container of a namespace with services called heliograph and heliograph-api. */
const OF_THE_KUBELET = {
  HOME: '/',
  KUBERNETES_SERVICE_HOST: '10.96.0.1',
  KUBERNETES_PORT: 'tcp://10.96.0.1:443',
  HELIOGRAPH_SERVICE_HOST: '10.96.0.7',
  HELIOGRAPH_SERVICE_PORT: '80',
  HELIOGRAPH_PORT: 'tcp://10.96.0.7:80',
  HELIOGRAPH_API_SERVICE_HOST: '10.96.0.8',
  HELIOGRAPH_API_SERVICE_PORT: '80',
  HELIOGRAPH_API_SERVICE_PORT_HTTP: '80',
  HELIOGRAPH_API_PORT: 'tcp://10.96.0.8:80',
  HELIOGRAPH_API_PORT_80_TCP: 'tcp://10.96.0.8:80',
  HELIOGRAPH_API_PORT_80_TCP_PROTO: 'tcp',
  HELIOGRAPH_API_PORT_80_TCP_PORT: '80',
  HELIOGRAPH_API_PORT_80_TCP_ADDR: '10.96.0.8',
};

/** The image to run; without one the same commands run on the sources. */
const IMAGE = process.env.HELIOGRAPH_TEST_IMAGE;

/** What finds the programs; the Docker client also needs to know its engine. */
const OWN_ENVIRONMENT = {
  PATH: process.env.PATH ?? '',
  ...(IMAGE !== undefined &&
    process.env.DOCKER_HOST !== undefined && { DOCKER_HOST: process.env.DOCKER_HOST }),
};

const SOME_UID = String(randomInt(1_000_000_000, 2_000_000_000));

/** A user that nobody has heard of and a root that cannot be written to, where this machine can make them. */
const CONFINED = [
  ...['unshare', '--mount', 'sh', '-c'],
  `mount -o remount,bind,ro / && mount -t tmpfs tmpfs /tmp && uid=$1 && shift &&
   exec setpriv --reuid="$uid" --regid=0 --clear-groups --inh-caps=-all --bounding-set=-all -- "$@"`,
  ...['sh', SOME_UID],
];
const [confine = '', ...confinement] = CONFINED;
const canConfine =
  process.getuid?.() === 0 &&
  spawnSync(confine, [...confinement, process.execPath, '-e', 'process.chdir(process.argv[1])', ROOT])
    .status === 0;

/** The command line that runs `args` of a container with these variables, which the command line itself is given. */
function commandLine(
  name: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): string[] {
  if (IMAGE === undefined) return [...(canConfine ? CONFINED : []), process.execPath, ...args.slice(1)];
  const options = [
    '--rm',
    `--name=${name}`,
    '--network=host',
    '--read-only',
    '--tmpfs=/tmp',
    '--cap-drop=ALL',
    `--user=${SOME_UID}:0`,
  ];
  const variables = Object.keys(environment).map((name) => `--env=${name}`);
  return ['docker', 'run', ...options, '--security-opt=no-new-privileges', ...variables, IMAGE, ...args];
}

/** On a busy machine. */
const START_TIMEOUT_MS = 150_000;

type Running = { child: ChildProcess; output(): string; exitCode: Promise<number | null> };

/** Runs what stands in a container, as a kubelet would; a port that the chart names is this one here. */
function runContainer(container: Container, environment: Record<string, string>): Running {
  expect(container.args[0]).toBe('node');
  const given = { HOSTNAME: `gw-heliograph-${container.name}-${randomInt(1_000_000)}`, ...environment };
  const [program = '', ...rest] = commandLine(given.HOSTNAME, container.args, given);
  const child = spawn(program, rest, {
    cwd: ROOT,
    env: { ...OWN_ENVIRONMENT, ...given },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      output += chunk;
    });
  }
  const exitCode = once(child, 'exit').then(([code]) => code as number | null);
  onTestFinished(async () => {
    if (IMAGE !== undefined) spawnSync('docker', ['rm', '--force', given.HOSTNAME]);
    child.kill('SIGKILL');
    await exitCode;
  });
  return { child, output: () => output, exitCode };
}

/** The chart on the servers of the tests, and its Secret. */
async function installation(settings: object = {}) {
  const servers = inject('infrastructure');
  const { url } = await testDatabase();
  const manifests = await renderChart({
    ...MINIMAL,
    settings: {
      ...MINIMAL.settings,
      HELIOGRAPH_TEMPORAL_ADDRESS: servers.temporalAddress,
      HELIOGRAPH_TEMPORAL_TASK_QUEUE_PREFIX: `pods-${randomInt(1_000_000)}`,
      HELIOGRAPH_OBJECT_STORE_URL: servers.minioUrl,
      ...settings,
    },
    listenAddress: '127.0.0.1',
  });
  const secret = {
    HELIOGRAPH_DATABASE_URL: url,
    HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: servers.minioAccessKey,
    HELIOGRAPH_OBJECT_STORE_SECRET_KEY: servers.minioSecretKey,
    HELIOGRAPH_UPSTREAM_APP_SECRETS: '0123456789abcdef0123456789abcdef',
    HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: 'token-of-the-test',
    HELIOGRAPH_ENCRYPTION_KEYS: `k1:${Buffer.from(Array.from({ length: 32 }, (_, byte) => byte)).toString('base64')}`,
  };
  return { manifests, secret };
}

/** Starts the pod of a component on free ports; `ask` asks as its probes do. */
async function startPod(manifests: Manifest[], component: 'api' | 'worker', secret: Record<string, string>) {
  const { container } = podOf(manifests, component);
  const http = await freePortBase();
  const metrics = http + 1;
  const running = runContainer(container, {
    ...OF_THE_KUBELET,
    ...environmentOf(container, secret),
    HELIOGRAPH_API_PORT: String(http),
    HELIOGRAPH_API_METRICS_PORT: String(metrics),
    HELIOGRAPH_WORKER_HEALTH_PORT: String(metrics),
  });
  const ask = async (probe: Container['readinessProbe']) => {
    const { port, path } = probe?.httpGet ?? { port: '', path: '' };
    const url = `http://127.0.0.1:${port === 'http' ? http : metrics}${path}`;
    return await fetch(url).then(
      ({ status }) => status,
      () => 0,
    );
  };
  return { ...running, container, ask, ports: { http, metrics } };
}

async function untilReady({ ask, container, output, child }: Awaited<ReturnType<typeof startPod>>) {
  const deadline = performance.now() + 90_000;
  while ((await ask(container.readinessProbe)) !== 200) {
    if (child.exitCode !== null || performance.now() > deadline) throw new Error(`not ready:\n${output()}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

describe.skipIf(GO === undefined)('pods of the chart, as a kubelet runs them', () => {
  beforeAll(async () => void (await goProgram('helm')), BUILD_TIMEOUT_MS);

  test.each(['api', 'worker'] as const)(
    '%s starts, its probes pass, and it stops before it is killed',
    async (component) => {
      const { manifests, secret } = await installation();
      const pod = await startPod(manifests, component, secret);
      await untilReady(pod);
      const { startupProbe, livenessProbe } = pod.container;
      expect([await pod.ask(startupProbe), await pod.ask(livenessProbe)]).toEqual([200, 200]);
      if (component === 'api') await expectHelmTest(manifests, pod.ports);
      const { terminationGracePeriodSeconds } = podOf(manifests, component);
      const stoppedAt = performance.now();
      pod.child.kill('SIGTERM');
      expect(await pod.exitCode, pod.output()).toBe(0);
      expect(performance.now() - stoppedAt).toBeLessThan(terminationGracePeriodSeconds * 1000);
    },
    START_TIMEOUT_MS,
  );

  test('migrate ends well while Temporal is away', async () => {
    const { manifests, secret } = await installation({ HELIOGRAPH_TEMPORAL_ADDRESS: '127.0.0.1:9' });
    const { container } = podOf(manifests, 'migrate');
    const { exitCode, output } = runContainer(container, {
      ...OF_THE_KUBELET,
      ...environmentOf(container, secret),
    });
    expect(await exitCode, output()).toBe(0);
    expect(output()).toContain('the schema is up to date');
    expect(output()).toContain('Temporal is away');
  });

  test('this machine runs them with a read-only root and a user of no name', ({ skip }) => {
    if (!canConfine) skip('NOT TESTED: needs root, unshare and setpriv');
    const written = spawnSync(
      confine,
      [...confinement, process.execPath, '-e', 'fs.writeFileSync("package.json", "")'],
      {
        cwd: ROOT,
      },
    );
    expect(written.status).not.toBe(0);
    expect(String(written.stderr)).toMatch(/EROFS|EACCES/);
  });
});

async function expectHelmTest(
  manifests: Manifest[],
  ports: { http: number; metrics: number },
): Promise<void> {
  const { containers } = objectOf(manifests, 'Pod', '-test').spec as unknown as PodSpec;
  const [container] = containers;
  if (container === undefined) throw new Error('no container');
  const environment = {
    ...environmentOf(container, {}),
    API: `http://127.0.0.1:${ports.http}`,
    METRICS_HOST: '127.0.0.1',
    METRICS_PORT: String(ports.metrics),
  };
  const { exitCode, output } = runContainer(container, environment);
  expect(await exitCode, output()).toBe(0);
  expect(output()).toMatch(/readyz: 200[\s\S]*version \d/);
}
