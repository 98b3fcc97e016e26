import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { settingsSchemas } from '../../../scripts/values-schema.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { V8_FLAGS } from '../../../src/platform/config/process-options.ts';
import type { Setting } from '../../../src/platform/config/setting.ts';
import { SETTINGS } from '../../../src/platform/config/settings.ts';
import { repositoryFile } from './compose-file.ts';
import { BUILD_TIMEOUT_MS, GO, goProgram } from './go-programs.ts';
import { KUBERNETES_VERSIONS, type ManifestCheck, manifestCheck } from './kubernetes-schemas.ts';
import {
  CHART,
  environmentOf,
  type Manifest,
  MINIMAL,
  objectOf,
  type PodSpec,
  podOf,
  renderChart,
  valueSet,
} from './rendered-chart.ts';

const run = promisify(execFile);
const COMPONENTS = ['api', 'worker', 'migrate'];
const VALUE_SETS = readdirSync(join(CHART, 'ci'));
const settings = Object.entries(SETTINGS as Record<string, Setting>);

/** What an operator would put into the Secret. */
const SECRET = {
  HELIOGRAPH_DATABASE_URL: 'postgresql://heliograph:bbbb@postgres:5432/heliograph',
  HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: 'heliograph',
  HELIOGRAPH_OBJECT_STORE_SECRET_KEY: 'cccccccc',
  HELIOGRAPH_UPSTREAM_APP_SECRETS: '0123456789abcdef-new',
  HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: 'token',
  HELIOGRAPH_ENCRYPTION_KEYS: `k1:${Buffer.from(Array.from({ length: 32 }, (_, byte) => byte)).toString('base64')}`,
};

function podsOf(manifests: readonly Manifest[]): PodSpec[] {
  return manifests.flatMap(({ kind, spec }) => {
    if (kind === 'Pod') return [spec as unknown as PodSpec];
    return spec?.template === undefined ? [] : [spec.template.spec];
  });
}

describe.skipIf(GO === undefined)('charts/heliograph', () => {
  beforeAll(async () => void (await goProgram('helm')), BUILD_TIMEOUT_MS);

  describe.each(VALUE_SETS)('the chart with %s', (name) => {
    let manifests: Manifest[];
    beforeAll(async () => {
      manifests = await renderChart(valueSet(name));
    });

    test('every container is without root, privileges and a root to write on', () => {
      const pods = podsOf(manifests);
      expect(pods.length).toBeGreaterThan(2);
      for (const pod of pods) {
        // With the container's, what the Pod Security Standard "restricted" asks for.
        expect(pod.securityContext).toMatchObject({
          runAsNonRoot: true,
          seccompProfile: { type: 'RuntimeDefault' },
        });
        expect(pod).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
        for (const container of pod.containers) {
          expect(container.securityContext).toEqual({
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          });
        }
      }
    });

    test('makes no Secret and no ConfigMap; secrets come from those of the operator', () => {
      const kinds = manifests.map(({ kind }) => kind);
      expect(kinds).not.toContain('Secret');
      expect(kinds).not.toContain('ConfigMap');
      for (const { name: setting, value } of podsOf(manifests).flatMap((pod) =>
        pod.containers.flatMap(({ env }) => env),
      )) {
        if (settings.some(([secret, { secret: isSecret }]) => secret === setting && isSecret))
          expect(value, setting).toBeUndefined();
      }
    });

    test('probes ask ports that the container opens', () => {
      for (const component of ['api', 'worker']) {
        const { container } = podOf(manifests, component);
        const environment = environmentOf(container, SECRET);
        const open = new Map(container.ports?.map((port) => [port.name, String(port.containerPort)]));
        const metricsPort =
          component === 'api' ? 'HELIOGRAPH_API_METRICS_PORT' : 'HELIOGRAPH_WORKER_HEALTH_PORT';
        expect(open.get('metrics')).toBe(environment[metricsPort]);
        if (component === 'api') expect(open.get('http')).toBe(environment.HELIOGRAPH_API_PORT);
        for (const probe of [container.startupProbe, container.readinessProbe, container.livenessProbe])
          expect([...open.keys()]).toContain(probe?.httpGet.port);
        // One that cannot reach PostgreSQL or Temporal is not ended for it.
        expect(container.livenessProbe?.httpGet.path).toBe('/healthz');
        expect(container.readinessProbe?.httpGet.path).toBe('/readyz');
      }
    });

    test('helm finds nothing to complain about', async () => {
      const args = ['lint', CHART, '--strict', '--quiet', '--kube-version', 'v1.30.0'];
      await run(await goProgram('helm'), [...args, '--values', join(CHART, 'ci', name)]);
    });
  });

  describe.each(KUBERNETES_VERSIONS)('the schemas of Kubernetes %s', (version) => {
    let check: ManifestCheck;
    beforeAll(async () => {
      check = await manifestCheck(version);
    }, BUILD_TIMEOUT_MS);

    test.each(VALUE_SETS)('allow all objects made with %s', async (name) => {
      for (const manifest of await renderChart(valueSet(name), version))
        expect(check(manifest), `${manifest.kind} ${manifest.metadata.name}`).toEqual([]);
    });

    test('refuse a misspelt field, a wrong type and a kind that does not exist', () => {
      const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'x' } };
      expect(check(service)).toEqual([]);
      expect(check({ ...service, spec: { selectr: {} } } as never)).toHaveLength(1);
      expect(check({ ...service, spec: { ports: [{ port: 'http' }] } } as never)).toHaveLength(1);
      expect(check({ apiVersion: 'v1', kind: 'Servce' })).toHaveLength(1);
      expect(check({ apiVersion: 'keda.sh/v1alpha1', kind: 'ScaledObject', spec: {} } as never)).not.toEqual(
        [],
      );
    });
  });

  describe('values.schema.json', () => {
    const refused: [string, object, RegExp][] = [
      ['a misspelt value', { ...MINIMAL, api: { replica: 3 } }, /replica/],
      ['a misspelt part', { ...MINIMAL, workers: { replicas: 3 } }, /workers/],
      [
        'a setting that does not exist',
        { ...MINIMAL, settings: { ...MINIMAL.settings, HELIOGRAPH_LOG_LEVL: 'warn' } },
        /HELIOGRAPH_LOG_LEVL/,
      ],
      [
        'a setting out of its range',
        { ...MINIMAL, settings: { ...MINIMAL.settings, HELIOGRAPH_DATABASE_POOL_MAX: 1 } },
        /HELIOGRAPH_DATABASE_POOL_MAX/,
      ],
      [
        'a secret among the settings',
        { ...MINIMAL, settings: { ...MINIMAL.settings, HELIOGRAPH_DATABASE_URL: 'postgresql://x' } },
        /HELIOGRAPH_DATABASE_URL/,
      ],
      ['a secret in the environment', { ...MINIMAL, extraEnv: [{ name: 'HELIOGRAPH_MODE' }] }, /extraEnv/],
      ['settings that are missing', { ...MINIMAL, settings: {} }, /HELIOGRAPH_PUBLIC_URL/],
      ['no Secret', { ...MINIMAL, secrets: {} }, /existingSecret/],
      [
        'a file that is no setting',
        { ...MINIMAL, secrets: { existingSecret: 'x', asFiles: ['PASSWORD'] } },
        /asFiles/,
      ],
      ['KEDA without Prometheus', { ...MINIMAL, worker: { keda: { enabled: true } } }, /serverAddress/],
      ['an HTTPRoute without a gateway', { ...MINIMAL, gateway: { enabled: true } }, /parentRefs/],
      [
        'two that scale the same workers',
        {
          ...MINIMAL,
          worker: { autoscaling: { enabled: true }, keda: { enabled: true, serverAddress: 'http://x' } },
        },
        /one of them scales the workers/,
      ],
    ];

    test.each(refused)('refuses %s', async (_what, values, reason) => {
      await expect(renderChart(values)).rejects.toThrow(reason);
    });

    test('refuses a Kubernetes that is too old', async () => {
      await expect(renderChart(MINIMAL, 'v1.29.0')).rejects.toThrow(/kubeVersion/);
    });

    test('knows the settings that there are: `npm run chart` brings it up to date', () => {
      const { definitions } = JSON.parse(repositoryFile('charts/heliograph/values.schema.json'));
      expect(definitions).toMatchObject(JSON.parse(JSON.stringify(settingsSchemas())));
    });
  });

  describe('settings', () => {
    test('each of production reaches each process, by values or by the Secret', async () => {
      const example = ({ fallback, minimum, choices, kind }: Setting) =>
        fallback || choices?.[0] || (kind === 'integer' ? (minimum ?? 1) : 'text');
      const { settings: known, secretNames } = settingsSchemas();
      const values = Object.fromEntries(
        settings
          .filter(([name]) => name in known.properties)
          .map(([name, setting]) => [name, example(setting)]),
      );
      const secret = Object.fromEntries(secretNames.enum.map((name) => [name, name]));
      const manifests = await renderChart({
        ...MINIMAL,
        settings: values,
        api: { tls: { existingSecret: 'tls' } },
      });
      for (const component of COMPONENTS) {
        const environment = environmentOf(podOf(manifests, component).container, secret);
        const missing = settings
          .map(([name]) => name)
          .filter(
            (name) => !(name in environment) && !/SANDBOX_|ALLOW_HTTP|HTTPS_PORT|HELIOGRAPH_TLS_/.test(name),
          );
        expect(missing, component).toEqual([]);
      }
      expect(environmentOf(podOf(manifests, 'api').container, secret)).toMatchObject({
        HELIOGRAPH_HTTPS_PORT: '8443',
        HELIOGRAPH_TLS_CERT_FILE: '/run/tls/tls.crt',
      });
    });

    test.each(['minimal.yaml', 'everything.yaml'])('are accepted as %s gives them', async (name) => {
      const manifests = await renderChart(valueSet(name));
      for (const component of COMPONENTS.slice(1)) {
        const environment = environmentOf(podOf(manifests, component).container, {
          ...SECRET,
          uri: SECRET.HELIOGRAPH_DATABASE_URL,
        });
        const config = loadConfig(environment);
        expect(config.mode).toBe('production');
        expect(config.media.maxBytes).toBe(104_857_600);
      }
    });

    test('open a port and a Service of their own for the pages of operators', async () => {
      const listen = { HELIOGRAPH_PORTAL_OPERATOR_LISTEN: '0.0.0.0:8090' };
      const settings = { ...(MINIMAL.settings as object), ...listen };
      const manifests = await renderChart({ ...MINIMAL, settings });
      const text = JSON.stringify(manifests);
      expect(text).toContain('{"containerPort":8090,"name":"operators"}');
      expect(text).toContain(
        '{"name":"operators","port":8090,"targetPort":"operators","appProtocol":"http"}',
      );
      expect(JSON.stringify(await renderChart(MINIMAL))).not.toContain('"name":"operators"');
    });

    test('arrive as they are given: nothing, no, and large numbers', async () => {
      const given = {
        HELIOGRAPH_RATE_LIMIT_READS_PER_SECOND: 0,
        HELIOGRAPH_TEMPORAL_TLS: false,
        HELIOGRAPH_MEDIA_MAX_BYTES: 2_147_483_648,
        HELIOGRAPH_TRUST_PROXY: '',
      };
      const manifests = await renderChart({ ...MINIMAL, settings: { ...MINIMAL.settings, ...given } });
      expect(environmentOf(podOf(manifests, 'api').container, {})).toMatchObject({
        HELIOGRAPH_RATE_LIMIT_READS_PER_SECOND: '0',
        HELIOGRAPH_TEMPORAL_TLS: 'false',
        HELIOGRAPH_MEDIA_MAX_BYTES: '2147483648',
        HELIOGRAPH_TRUST_PROXY: '',
      });
    });

    test('files and variables are not mixed: each secret is given once', async () => {
      const manifests = await renderChart(valueSet('secrets-as-files.yaml'));
      const { container, volumes } = podOf(manifests, 'worker');
      expect(container.envFrom).toBeUndefined();
      const environment = environmentOf(container, {});
      for (const name of Object.keys(SECRET)) {
        expect(environment[name]).toBeUndefined();
        expect(environment[`${name}_FILE`]).toBe(`/run/secrets/heliograph/${name}`);
      }
      expect(volumes).toContainEqual(
        expect.objectContaining({ secret: expect.objectContaining({ secretName: 'heliograph' }) }),
      );
    });
  });

  describe('processes', () => {
    test('run the commands of the image', async () => {
      const manifests = await renderChart(MINIMAL);
      const flags = [...V8_FLAGS, '--import', './bin/stripped-types.js'];
      expect(repositoryFile('Dockerfile')).toContain('./bin/stripped-types.js');
      for (const component of ['api', 'worker'])
        expect(podOf(manifests, component).container.args).toEqual([
          'node',
          ...flags,
          'src/main.ts',
          component,
        ]);
      expect(podOf(manifests, 'migrate').container.args).toEqual(['node', 'src/main.ts', 'migrate']);
    });

    test('migrate runs before the others change, and needs nothing that the chart makes', async () => {
      const manifests = await renderChart(valueSet('everything.yaml'));
      const job = objectOf(manifests, 'Job', '-migrate');
      expect(job.metadata.annotations).toMatchObject({
        'helm.sh/hook': 'pre-install,pre-upgrade',
        'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
      });
      expect(podOf(manifests, 'migrate').serviceAccountName).toBe('default');
      const policy = objectOf(manifests, 'NetworkPolicy', '-migrate');
      expect(policy.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'pre-install,pre-upgrade' });
      for (const component of ['api', 'worker'])
        expect(objectOf(manifests, 'Deployment', `-${component}`).metadata.annotations).toBeUndefined();
    });

    test('may finish what is under way before they are killed', async () => {
      const raised = {
        HELIOGRAPH_API_DRAIN_NOTICE_MS: 20_000,
        HELIOGRAPH_API_DRAIN_TIMEOUT_MS: 60_000,
        HELIOGRAPH_WORKER_DRAIN_TIMEOUT_MS: '120000',
      };
      const drainSeconds = (name: keyof typeof raised, given: Partial<typeof raised>) =>
        Number(given[name] ?? (SETTINGS as Record<string, Setting>)[name]?.fallback) / 1000;
      for (const given of [{}, raised]) {
        const manifests = await renderChart({ ...MINIMAL, settings: { ...MINIMAL.settings, ...given } });
        const api = podOf(manifests, 'api');
        const preStopSeconds = api.container.lifecycle?.preStop.sleep.seconds ?? 0;
        expect(preStopSeconds).toBeGreaterThan(0);
        expect(api.terminationGracePeriodSeconds).toBeGreaterThan(
          preStopSeconds +
            drainSeconds('HELIOGRAPH_API_DRAIN_NOTICE_MS', given) +
            drainSeconds('HELIOGRAPH_API_DRAIN_TIMEOUT_MS', given),
        );
        expect(podOf(manifests, 'worker').terminationGracePeriodSeconds).toBeGreaterThan(
          drainSeconds('HELIOGRAPH_WORKER_DRAIN_TIMEOUT_MS', given),
        );
      }
    });

    test('keep running while nodes are emptied, and replicas are left to what scales them', async () => {
      const manifests = await renderChart(valueSet('minimal.yaml'));
      const scaled = await renderChart(valueSet('everything.yaml'));
      for (const component of ['api', 'worker']) {
        const deployment = objectOf(manifests, 'Deployment', `-${component}`);
        const budget = objectOf(manifests, 'PodDisruptionBudget', `-${component}`);
        expect(deployment.spec.replicas).toBe(2);
        expect(deployment.spec.strategy).toMatchObject({ rollingUpdate: { maxUnavailable: 0 } });
        expect(budget.spec.selector).toEqual(deployment.spec.selector);
        const autoscaler = objectOf(scaled, 'HorizontalPodAutoscaler', `-${component}`);
        const target = objectOf(scaled, 'Deployment', `-${component}`);
        expect(autoscaler.spec.scaleTargetRef).toMatchObject({ name: target.metadata.name });
        expect(target.spec.replicas).toBeUndefined();
      }
    });
  });

  test('a long name leaves room for what is appended to it', async () => {
    const manifests = await renderChart({ ...MINIMAL, fullnameOverride: `${'long-name-'.repeat(5)}gateway` });
    const names = manifests.map(({ metadata }) => metadata.name);
    expect(new Set(manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).size).toBe(
      names.length,
    );
    for (const name of names) expect(name).toMatch(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/);
  });
});
