import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import { goProgram } from './go-programs.ts';

const run = promisify(execFile);

export const CHART = fileURLToPath(new URL('../../../charts/heliograph', import.meta.url));

type Probe = { httpGet: { path: string; port: string } };

export type Container = {
  name: string;
  image: string;
  args: string[];
  env: {
    name: string;
    value?: string;
    valueFrom?: { secretKeyRef: { name: string; key: string } };
  }[];
  envFrom?: { secretRef: { name: string } }[];
  ports?: { name: string; containerPort: number }[];
  startupProbe?: Probe;
  readinessProbe?: Probe;
  livenessProbe?: Probe;
  lifecycle?: { preStop: { sleep: { seconds: number } } };
  securityContext: object;
  volumeMounts: { name: string; mountPath: string }[];
};

export type PodSpec = {
  serviceAccountName?: string;
  automountServiceAccountToken: boolean;
  enableServiceLinks: boolean;
  terminationGracePeriodSeconds: number;
  securityContext: object;
  containers: Container[];
  volumes: { name: string; secret?: { secretName: string }; configMap?: object }[];
};

/** An object for Kubernetes, with what the tests look at. */
export type Manifest = {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace: string; annotations?: Record<string, string> };
  spec: {
    [member: string]: unknown;
    template?: { metadata: { labels: Record<string, string> }; spec: PodSpec };
  };
};

/** What an operator has to say at least. */
export const MINIMAL = {
  settings: {
    HELIOGRAPH_PUBLIC_URL: 'https://gateway.example',
    HELIOGRAPH_TEMPORAL_ADDRESS: 'temporal-frontend.temporal:7233',
    HELIOGRAPH_OBJECT_STORE_URL: 'https://s3.example',
  },
  secrets: { existingSecret: 'heliograph' },
  networkPolicy: { egress: { to: [] } },
};

const rendered = new Map<string, Promise<Manifest[]>>();

/** The objects that `helm install gw` would make, hooks included; rejects with what helm says. */
export async function renderChart(values: object, kubernetes = 'v1.30.0'): Promise<Manifest[]> {
  const key = JSON.stringify([values, kubernetes]);
  const manifests = rendered.get(key) ?? render(values, kubernetes);
  rendered.set(key, manifests);
  return await manifests;
}

/** What helm says when the chart was installed. It renders that for a cluster only, so here it is an object of the chart. */
export async function renderNotes(values: object): Promise<string> {
  const chart = mkdtempSync(join(tmpdir(), 'heliograph-notes-'));
  try {
    cpSync(CHART, chart, { recursive: true });
    const notes = readFileSync(join(CHART, 'templates/NOTES.txt'), 'utf8');
    const object = `{{- define "notes" }}${notes}{{ end -}}
kind: Notes
metadata: { name: notes }
text: {{ include "notes" . | toJson }}
`;
    writeFileSync(join(chart, 'templates/notes.yaml'), object);
    const { text } = objectOf(await render(values, 'v1.30.0', chart), 'Notes') as Manifest & { text: string };
    return text;
  } finally {
    rmSync(chart, { recursive: true, force: true });
  }
}

async function render(values: object, kubernetes: string, chart = CHART): Promise<Manifest[]> {
  const directory = mkdtempSync(join(tmpdir(), 'heliograph-chart-'));
  const file = join(directory, 'values.json');
  writeFileSync(file, JSON.stringify(values));
  try {
    const args = ['template', 'gw', chart, '--namespace', 'gateway', '--kube-version', kubernetes];
    const { stdout } = await run(await goProgram('helm'), [...args, '--values', file], {
      maxBuffer: 16 * 1024 * 1024,
    });
    const documents = parseAllDocuments(stdout);
    const errors = documents.flatMap((document) => document.errors);
    if (errors[0] !== undefined) throw errors[0];
    return documents.map((document) => document.toJS()).filter((manifest) => manifest !== null);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The one object of a kind whose name ends so. */
export function objectOf(manifests: readonly Manifest[], kind: string, suffix = ''): Manifest {
  const found = manifests.filter(
    (manifest) => manifest.kind === kind && manifest.metadata.name.endsWith(suffix),
  );
  if (found.length !== 1 || found[0] === undefined)
    throw new Error(`${found.length} of ${kind} …${suffix}, not one`);
  return found[0];
}

/** The pod of the api, the worker or the migration. */
export function podOf(manifests: readonly Manifest[], component: string): PodSpec & { container: Container } {
  const spec = objectOf(manifests, component === 'migrate' ? 'Job' : 'Deployment', `-${component}`).spec
    .template?.spec;
  const container = spec?.containers[0];
  if (spec === undefined || container === undefined) throw new Error(`${component} has no container`);
  return { ...spec, container };
}

/** The variables of a container, where the Secret has these values. */
export function environmentOf(
  { env, envFrom }: Container,
  secret: Readonly<Record<string, string>>,
): Record<string, string> {
  const given = env.map(({ name, value, valueFrom }) => [
    name,
    value ?? secret[valueFrom?.secretKeyRef.key ?? ''] ?? '',
  ]);
  return { ...(envFrom === undefined ? {} : secret), ...Object.fromEntries(given) };
}

/** Values of charts/heliograph/ci. */
export function valueSet(name: string): object {
  return parse(readFileSync(join(CHART, 'ci', name), 'utf8'));
}
