import { stripTypeScriptTypes } from 'node:module';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import packageJson from '../../../package.json' with { type: 'json' };
import { loadConfig } from '../../../src/platform/config/config.ts';
import { adoptPlatformSettings } from '../../../src/platform/config/platform-variables.ts';
import { V8_FLAGS } from '../../../src/platform/config/process-options.ts';
import { SETTINGS } from '../../../src/platform/config/settings.ts';
import { repositoryFile, variableLines } from './compose-file.ts';

/** What a platform makes of a value that it generates: 32 bytes in base64, and random letters and digits. */
const KEY = Buffer.from(Array.from({ length: 32 }, (_, byte) => byte * 7)).toString('base64');
const RANDOM = 'k2Jd83hsPq0mZx7TfLw5Rb9VcY1nGa4u';
const DATABASE_URL = 'postgresql://u:p@db.example:5432/heliograph';

/** What a person fills in where a template asks. */
const ASKED: Readonly<Record<string, string>> = {
  HELIOGRAPH_UPSTREAM_APP_SECRETS: '0123456789abcdef0123456789abcdef',
  HELIOGRAPH_TEMPORAL_ADDRESS: 'eu-central-1.aws.api.temporal.io:7233',
  HELIOGRAPH_TEMPORAL_NAMESPACE: 'gateway.a1b2c',
  HELIOGRAPH_TEMPORAL_API_KEY: 'key-of-temporal-cloud',
  HELIOGRAPH_OBJECT_STORE_URL: 'https://s3.example',
  HELIOGRAPH_OBJECT_STORE_REGION: 'eu-central-1',
  HELIOGRAPH_OBJECT_STORE_BUCKET: 'heliograph-media',
  HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: 'access',
  HELIOGRAPH_OBJECT_STORE_SECRET_KEY: 'secret',
  HELIOGRAPH_ENCRYPTION_KEYS: KEY,
};

type Template = {
  /** The environment of the process, with what the platform adds and a person fills in. */
  env: Record<string, string>;
  command: string;
  health: string | null;
};

type RenderVariable = {
  key: string;
  value?: string;
  generateValue?: boolean;
  sync?: boolean;
  fromDatabase?: { name: string; property: string };
};

function renderTemplate(): Template {
  const { services, databases } = parse(repositoryFile('deploy/render/render.yaml')) as {
    services: { envVars: RenderVariable[]; dockerCommand: string; healthCheckPath: string }[];
    databases: { name: string }[];
  };
  const [service] = services;
  const valueGiven = ({ key, value, generateValue, sync, fromDatabase }: RenderVariable) => {
    if (value !== undefined) return value;
    if (generateValue === true) return KEY;
    if (sync === false) return ASKED[key] ?? '';
    expect(fromDatabase).toEqual({ name: databases[0]?.name, property: 'connectionString' });
    return DATABASE_URL;
  };
  const given = Object.fromEntries((service?.envVars ?? []).map((one) => [one.key, valueGiven(one)]));
  return {
    env: { ...given, RENDER_EXTERNAL_URL: 'https://heliograph.onrender.example' },
    command: service?.dockerCommand ?? '',
    health: service?.healthCheckPath ?? null,
  };
}

function railwayTemplate(): Template {
  const { deploy } = JSON.parse(repositoryFile('deploy/railway/railway.json'));
  const lines = variableLines(repositoryFile('deploy/railway/variables.env'));
  const filled = Object.entries(lines).map(([name, value]) => {
    const [, expression] = /^\$\{\{(.+)\}\}$/.exec(value) ?? [];
    if (expression === undefined) return [name, value || (ASKED[name] ?? '')];
    const made = { 'Postgres.DATABASE_URL': DATABASE_URL, 'secret(32)': RANDOM }[expression];
    expect(made, expression).toBeDefined();
    return [name, made ?? ''];
  });
  return {
    env: { ...Object.fromEntries(filled), RAILWAY_PUBLIC_DOMAIN: 'heliograph.railway.example' },
    command: deploy.startCommand,
    health: deploy.healthcheckPath,
  };
}

type CoolifyService = { command?: string[]; environment: Record<string, string>; build?: string };

function coolifyServices(): Record<string, CoolifyService> {
  const made = (text: string) =>
    text
      .replace(/\$\{SERVICE_URL_HELIOGRAPH(_8080)?\}/g, 'https://heliograph.coolify.example')
      .replace(/\$\{SERVICE_REALBASE64_32_\w+\}/g, KEY)
      .replace(/\$\{SERVICE_HEX_(?:32|64)_(\w+)\}/g, (_all, name: string) => `${name.toLowerCase()}${RANDOM}`)
      .replace(/\$\{(\w+):\?\}/g, (_all, name: string) => ASKED[name] ?? '');
  const { services } = parse(made(repositoryFile('deploy/coolify/docker-compose.yml')));
  return services;
}

function coolifyTemplate(): Template {
  const { heliograph } = coolifyServices();
  return { env: { ...heliograph?.environment }, command: heliograph?.command?.join(' ') ?? '', health: null };
}

type EasypanelService = {
  type: string;
  data: { serviceName: string; env?: string; deploy?: { command: string }; password?: string };
};

/** `index.ts` as Easypanel runs it, with its functions for random values. */
function easypanelServices(input: Record<string, unknown>): EasypanelService[] {
  const source = stripTypeScriptTypes(repositoryFile('deploy/easypanel/index.ts'))
    .replace(/^import .*$/gm, '')
    .replace('export function', 'return function');
  const generate = new Function('randomPassword', 'randomString', source)(
    () => RANDOM,
    (length: number) => RANDOM.slice(0, length),
  ) as (given: object) => { services: EasypanelService[] };
  return generate(input).services;
}

const easypanelSchema = () =>
  parse(repositoryFile('deploy/easypanel/meta.yaml')).schema as {
    required: string[];
    properties: Record<string, { default?: unknown }>;
  };

function easypanelTemplate(): Template {
  const { properties } = easypanelSchema();
  const asked: Record<string, string> = {
    appServiceImage: `registry.example/heliograph:${packageJson.version}`,
    appSecrets: ASKED.HELIOGRAPH_UPSTREAM_APP_SECRETS ?? '',
    temporalAddress: ASKED.HELIOGRAPH_TEMPORAL_ADDRESS ?? '',
    temporalNamespace: 'gateway.a1b2c',
    objectStoreUrl: 'https://s3.example',
    objectStoreAccessKey: 'access',
    objectStoreSecretKey: 'secret',
  };
  const input = Object.fromEntries(
    Object.entries(properties).map(([name, { default: value }]) => [name, value ?? asked[name]]),
  );
  const [app, database] = easypanelServices(input);
  expect(database).toMatchObject({ type: 'postgres', data: { password: RANDOM } });
  expect(app?.data.env).toContain(`@$(PROJECT_NAME)_${database?.data.serviceName}:5432/`);
  const text = (app?.data.env ?? '')
    .replaceAll('$(PROJECT_NAME)', 'shop')
    .replaceAll(/\$\(\w+\)/g, 'gw.example');
  return { env: variableLines(text), command: app?.data.deploy?.command ?? '', health: null };
}

const TEMPLATES: [string, () => Template][] = [
  ['Render', renderTemplate],
  ['Railway', railwayTemplate],
  ['Coolify', coolifyTemplate],
  ['Easypanel', easypanelTemplate],
];

describe.each(TEMPLATES)('the template of %s', (_name, read) => {
  test('sets only what the service reads, and all that it requires', () => {
    const { env } = read();
    const ours = Object.keys(env).filter((name) => name.startsWith('HELIOGRAPH_'));
    expect(ours.filter((name) => !(name in SETTINGS))).toEqual([]);
    adoptPlatformSettings(env);
    const config = loadConfig(env);
    expect(config.mode).toBe('production');
    expect(config.api).toMatchObject({ host: '0.0.0.0', port: 8080 });
    expect(config.api.publicUrl).toMatch(/^https:\/\//);
    expect(config.database.url).toMatch(/^postgresql:/);
    expect(config.api.trustProxy).not.toEqual([]);
    expect(config.temporal.address).not.toContain('127.0.0.1');
    expect(config.objectStore.url).not.toContain('127.0.0.1');
  });

  test('has the safe values of a new installation', () => {
    expect(read().env).toMatchObject({
      HELIOGRAPH_PORTAL_SECOND_FACTOR: 'operators',
      HELIOGRAPH_MEDIA_URL_TTL_SECONDS: '604800',
    });
  });

  test('migrates and runs all in one process', () => {
    const { command, health } = read();
    expect(command).toBe(['node', ...V8_FLAGS, '--import ./bin/stripped-types.js src/main.ts run'].join(' '));
    if (health !== null) expect(health).toBe('/readyz');
  });

  test('has no secret written down', () => {
    const { env } = read();
    const names = ['HELIOGRAPH_ENCRYPTION_KEYS', 'HELIOGRAPH_UPSTREAM_VERIFY_TOKEN'] as const;
    for (const name of names)
      expect(env[name]?.includes(RANDOM) || env[name] === KEY || atob(env[name] ?? '') === RANDOM).toBe(true);
  });
});

describe('further parts', () => {
  test('Coolify builds Temporal and the store from the folders of docker-compose.small.yml, with its environment', () => {
    const small = parse(repositoryFile('docker-compose.small.yml'), { merge: true });
    const { temporal, 'object-store': store, heliograph, postgres } = coolifyServices();
    expect(temporal?.build).toBe(small.services.temporal.build);
    expect(store?.build).toBe(small.services['object-store'].build);
    for (const [name, value] of Object.entries<string>(small.services.temporal.environment))
      if (!/USER|PASSWORD|PWD/.test(name)) expect(temporal?.environment[name], name).toBe(value);
    const password = postgres?.environment.POSTGRES_PASSWORD;
    expect(temporal?.environment).toMatchObject({ POSTGRES_PWD: password, SQL_PASSWORD: password });
    expect(heliograph?.environment.DATABASE_URL).toContain(`:${password}@postgres:5432/heliograph`);
    expect(heliograph?.environment.HELIOGRAPH_OBJECT_STORE_SECRET_KEY).toBe(
      store?.environment.ROOT_SECRET_KEY,
    );
    for (const line of ['documentation', 'slogan', 'tags', 'port'])
      expect(repositoryFile('deploy/coolify/docker-compose.yml')).toMatch(new RegExp(`^# ${line}: \\S`, 'm'));
  });

  test('Easypanel asks for what has no default, and for an image by its version', () => {
    const { required, properties } = easypanelSchema();
    const withoutDefault = Object.keys(properties).filter((name) => properties[name]?.default === undefined);
    expect(withoutDefault.filter((name) => !required.includes(name))).toEqual([]);
    expect(properties.appServiceImage).toMatchObject({
      title: expect.stringContaining(`heliograph:${packageJson.version}`),
    });
    expect(repositoryFile('deploy/easypanel/index.ts')).not.toContain(':latest');
  });

  test('the page about platforms names settings that there are, and those for Temporal Cloud are accepted', () => {
    const page = repositoryFile('docs/operators/platforms.md');
    const named = page.match(/\bHELIOGRAPH_[A-Z_]+[A-Z]\b/g) ?? [];
    expect(named.length).toBeGreaterThan(15);
    expect(named.filter((name) => !(name in SETTINGS))).toEqual([]);
    const [, cloud = ''] = /^```\n(HELIOGRAPH_TEMPORAL_[\s\S]*?)^```$/m.exec(page) ?? [];
    const { env } = railwayTemplate();
    adoptPlatformSettings(env);
    const { temporal } = loadConfig({ ...env, ...variableLines(cloud) });
    expect(temporal).toMatchObject({ namespace: 'gateway.a1b2c', tls: { caFile: '' } });
    expect(temporal.apiKey).not.toBe('');
  });
});
