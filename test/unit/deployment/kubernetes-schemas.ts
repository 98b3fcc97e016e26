import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Ajv, type ValidateFunction } from 'ajv';
import { parse } from 'yaml';
import { GO } from './go-programs.ts';

const run = promisify(execFile);

/** The oldest version that the chart takes, and a new one. */
export const KUBERNETES_VERSIONS = ['v1.30.14', 'v1.36.3'] as const;

/** Where the schemas of other kinds are: the definitions that their projects publish. */
const CUSTOM_RESOURCES: Readonly<Record<string, { module: string; path: string }>> = {
  ServiceMonitor: {
    module: 'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    path: 'example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml',
  },
  PrometheusRule: {
    module: 'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    path: 'example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml',
  },
  ScaledObject: {
    module: 'github.com/kedacore/keda/v2@v2.21.0',
    path: 'config/crd/bases/keda.sh_scaledobjects.yaml',
  },
  HTTPRoute: {
    module: 'sigs.k8s.io/gateway-api@v1.4.1',
    path: 'config/crd/standard/gateway.networking.k8s.io_httproutes.yaml',
  },
};

type Schema = { [key: string]: unknown };
type Manifest = { apiVersion: string; kind: string };

/** What is wrong with a manifest, by the schemas of a version of Kubernetes; a field that does not exist is wrong. */
export type ManifestCheck = (manifest: Manifest) => string[];

/** Schemas come from the Go module proxy once per user. */
export async function manifestCheck(version: (typeof KUBERNETES_VERSIONS)[number]): Promise<ManifestCheck> {
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
  const api = JSON.parse(
    await publishedFile(`k8s.io/kubernetes@${version}`, 'api/openapi-spec/swagger.json'),
  );
  ajv.addSchema(withoutUnknownFields(api) as Schema, 'kubernetes');
  const kinds = kindsOf(api.definitions);
  for (const { module, path } of Object.values(CUSTOM_RESOURCES)) await publishedFile(module, path);
  const validators = new Map<string, ValidateFunction>();
  return (manifest) => {
    const id = `${manifest.apiVersion} ${manifest.kind}`;
    const definition = kinds.get(id);
    const schema =
      definition === undefined
        ? customResourceSchema(manifest)
        : { $ref: `kubernetes#/definitions/${definition}` };
    if (schema === null) return [`${id} has no schema`];
    const validate = validators.get(id) ?? ajv.compile(schema);
    validators.set(id, validate);
    if (validate(manifest)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  };
}

function kindsOf(definitions: Record<string, Schema>): Map<string, string> {
  const kinds = new Map<string, string>();
  for (const [name, schema] of Object.entries(definitions)) {
    const groups = (schema['x-kubernetes-group-version-kind'] ?? []) as Record<string, string>[];
    for (const { group, version, kind } of groups) {
      kinds.set(`${group === '' ? '' : `${group}/`}${version} ${kind}`, name);
    }
  }
  return kinds;
}

function customResourceSchema({ apiVersion, kind }: Manifest): Schema | null {
  const place = CUSTOM_RESOURCES[kind];
  if (place === undefined) return null;
  const { spec } = parse(readFileSync(cachePath(place.module, place.path), 'utf8'));
  const [group, version] = apiVersion.split('/');
  if (spec.group !== group) return null;
  const served = spec.versions.find((candidate: { name: string }) => candidate.name === version);
  return served === undefined ? null : (withoutUnknownFields(served.schema.openAPIV3Schema) as Schema);
}

/** A server ignores fields that it does not know: whoever misspells one gets its default. */
function withoutUnknownFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUnknownFields);
  if (typeof value !== 'object' || value === null) return value;
  const schema = Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, withoutUnknownFields(member)]),
  );
  if (schema.format === 'int-or-string') return { type: ['integer', 'string'] };
  // Go's way to write that case does not matter.
  if (typeof schema.pattern === 'string' && schema.pattern.includes('(?i)')) delete schema.pattern;
  const isOpen = schema.additionalProperties !== undefined || schema['x-kubernetes-preserve-unknown-fields'];
  if (schema.type === 'object' && typeof schema.properties === 'object' && !isOpen) {
    return { ...schema, additionalProperties: false };
  }
  return schema;
}

const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'heliograph', 'schemas');

function cachePath(module: string, path: string): string {
  return join(CACHE, `${module}-${path}`.replaceAll('/', '-'));
}

/** A file of a Go module, which the proxy has, checked by its sum; kept, while the rest of the module is not. */
async function publishedFile(module: string, path: string): Promise<string> {
  const kept = cachePath(module, path);
  if (existsSync(kept)) return readFileSync(kept, 'utf8');
  const work = await mkdtemp(join(tmpdir(), 'heliograph-schemas-'));
  const env = { ...process.env, GOMODCACHE: work, GOFLAGS: '-modcacherw' };
  try {
    const { stdout } = await run(GO ?? 'go', ['mod', 'download', '-json', module], { cwd: work, env });
    const text = readFileSync(join(JSON.parse(stdout).Dir, path), 'utf8');
    await mkdir(CACHE, { recursive: true });
    const draft = `${kept}.${process.pid}`;
    await writeFile(draft, text);
    await rename(draft, kept);
    return text;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
