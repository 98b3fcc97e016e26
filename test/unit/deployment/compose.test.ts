import { existsSync, statSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import packageJson from '../../../package.json' with { type: 'json' };
import { loadConfig } from '../../../src/platform/config/config.ts';
import { InvalidSettingsError } from '../../../src/platform/config/read-settings.ts';
import { SETTINGS, type Setting } from '../../../src/platform/config/settings.ts';
import {
  COMPOSE,
  COMPOSE_TEXT,
  composeService,
  repositoryFile,
  substitute,
  variablesIn,
} from './compose-file.ts';

/** Processes of ours; the rest are servers of others. */
const OWN_SERVICES = ['migrate', 'api', 'worker'];
const SERVICES = Object.entries(COMPOSE.services);

/** What an operator would put into .env. */
const FILLED_IN = {
  POSTGRES_PASSWORD: 'aaaa',
  DATABASE_PASSWORD: 'bbbb',
  TEMPORAL_DATABASE_PASSWORD: 'cccc',
  OBJECT_STORE_PASSWORD: 'dddddddd',
  HELIOGRAPH_PUBLIC_URL: 'https://gateway.example',
  HELIOGRAPH_UPSTREAM_APP_SECRETS: '0123456789abcdef-new,0123456789abcdef-old',
  HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: 'token',
  HELIOGRAPH_ENCRYPTION_KEYS: `k1:${Buffer.from(Array.from({ length: 32 }, (_, byte) => byte)).toString('base64')}`,
};

function settingsOf(name: string, values: Readonly<Record<string, string>>): Record<string, string> {
  const environment = Object.entries(composeService(name).environment ?? {});
  return Object.fromEntries(environment.map(([key, value]) => [key, substitute(value, values)]));
}

function existsInRepository(path: string): boolean {
  return existsSync(new URL(`../../../${path}`, import.meta.url));
}

describe('docker-compose.yml', () => {
  test('uses no setting that the service does not have', () => {
    const used = COMPOSE_TEXT.match(/\bHELIOGRAPH_[A-Z0-9_]+/g) ?? [];
    expect(used.length).toBeGreaterThan(10);
    expect([...new Set(used)].filter((name) => !(name in SETTINGS))).toEqual([]);
  });

  test.each(OWN_SERVICES)('passes on to %s every setting, so that none in .env is without effect', (name) => {
    const given = settingsOf(name, FILLED_IN);
    // Development mode's own; Compose runs the service in production.
    const isDevelopment = (setting: string) =>
      setting.startsWith('HELIOGRAPH_SANDBOX_') || setting === 'HELIOGRAPH_WEBHOOK_ALLOW_HTTP';
    const missing = Object.keys(SETTINGS).filter((setting) => !(setting in given || isDevelopment(setting)));
    expect(missing).toEqual([]);
    const passed = settingsOf(name, { ...FILLED_IN, HELIOGRAPH_SEND_MESSAGES_PER_SECOND: '20' });
    expect(loadConfig(passed).sending.messagesPerSecond).toBe(20);
  });

  test.each(OWN_SERVICES)('gives %s every setting that has no default', (name) => {
    const required = Object.entries(SETTINGS as Record<string, Setting>)
      .filter(([, setting]) => setting.fallback === undefined)
      .map(([setting]) => setting);
    expect(Object.keys(settingsOf(name, FILLED_IN))).toEqual(expect.arrayContaining(required));
  });

  test.each(OWN_SERVICES)('gives %s settings that the service accepts, once .env is filled in', (name) => {
    const config = loadConfig(settingsOf(name, FILLED_IN));
    expect(config.mode).toBe('production');
    expect(config.database.url).toBe('postgresql://heliograph:bbbb@postgres:5432/heliograph');
    expect(config.webhooks.retryScheduleMs).toHaveLength(10);
  });

  test('an empty .env is refused by the service too, so that no secret has a default', () => {
    expect(() => loadConfig(settingsOf('api', {}))).toThrow(InvalidSettingsError);
  });

  test('takes every secret from .env, and says what is missing there', () => {
    for (const [name, setting] of Object.entries(SETTINGS as Record<string, Setting>)) {
      const value = composeService('api').environment?.[name];
      if (setting.secret !== true || value === undefined) continue;
      const required = setting.fallback === undefined;
      expect(variablesIn(value), name).toEqual([expect.objectContaining(required ? { required } : {})]);
    }
    for (const [name, service] of SERVICES) {
      for (const [key, value] of Object.entries(service.environment ?? {})) {
        if (!/PASSWORD|PWD|SECRET_KEY/.test(key)) continue;
        expect(variablesIn(value), `${name} ${key}`).toEqual([expect.objectContaining({ required: true })]);
      }
    }
  });

  test.each(SERVICES)('%s is built here or pinned to a version', (_name, service) => {
    expect(service.image).toMatch(/^[a-z0-9/.-]+:[0-9][A-Za-z0-9.-]*$/);
    if (service.build !== undefined) {
      const folder = service.build === '.' ? '' : `${service.build}/`;
      expect(existsInRepository(`${folder}Dockerfile`)).toBe(true);
    }
  });

  test('the image of the service carries its version', () => {
    for (const name of OWN_SERVICES) {
      expect(composeService(name).image).toBe(`heliograph:${packageJson.version}`);
    }
  });

  test.each(SERVICES)('%s mounts only volumes and files that exist', (_name, service) => {
    for (const mount of service.volumes ?? []) {
      const [source = ''] = mount.split(':');
      if (source.startsWith('./')) expect(existsInRepository(source.slice(2)), source).toBe(true);
      else expect(Object.keys(COMPOSE.volumes)).toContain(source);
    }
  });

  test.each(SERVICES)(
    '%s waits for services that exist and can reach the state it waits for',
    (_name, service) => {
      for (const [name, { condition }] of Object.entries(service.depends_on ?? {})) {
        const other = composeService(name);
        if (condition === 'service_healthy') expect(other.healthcheck?.test, name).toBeDefined();
        else {
          expect(condition).toBe('service_completed_successfully');
          expect(other.restart, `${name} must end`).toMatch(/^on-failure/);
        }
      }
    },
  );

  test('nothing but the API is open to other machines', () => {
    for (const [name, service] of SERVICES) {
      for (const port of service.ports ?? []) {
        if (name !== 'api') expect(port, name).toMatch(/^127\.0\.0\.1:/);
      }
    }
    expect(composeService('api').ports).toHaveLength(1);
  });

  test('the health checks of api and worker ask the ports that their settings open', () => {
    const settings = settingsOf('worker', FILLED_IN);
    const asked = (name: string) => composeService(name).healthcheck?.test?.join(' ');
    expect(asked('api')).toContain(`127.0.0.1:${settings.HELIOGRAPH_API_PORT}/readyz`);
    expect(asked('worker')).toContain(`127.0.0.1:${settings.HELIOGRAPH_WORKER_HEALTH_PORT}/readyz`);
  });

  test('the namespace that is created is the one that the service uses', () => {
    const { NAMESPACE } = composeService('temporal-namespace').environment ?? {};
    expect(settingsOf('worker', FILLED_IN).HELIOGRAPH_TEMPORAL_NAMESPACE).toBe(NAMESPACE);
  });
});

describe('deploy/example.env', () => {
  const lines = repositoryFile('deploy/example.env').split('\n');
  const names = (pattern: RegExp) => lines.flatMap((line) => pattern.exec(line)?.[1] ?? []);
  const required = names(/^([A-Z_]+)=$/);
  const optional = names(/^#([A-Z_]+)=/);

  test('asks for exactly the variables without which Compose does not start', () => {
    const wanted = variablesIn(COMPOSE_TEXT).filter((variable) => variable.required);
    expect(required.toSorted()).toEqual([...new Set(wanted.map(({ name }) => name))].sort());
  });

  test('names every other variable of docker-compose.yml, switched off', () => {
    const others = variablesIn(COMPOSE_TEXT).filter((variable) => !variable.required);
    expect(optional.toSorted()).toEqual([...new Set(others.map(({ name }) => name))].sort());
  });

  test('holds no value, so that nobody runs with one from here', () => {
    expect(lines.filter((line) => /^[^#]/.test(line) && !line.endsWith('='))).toEqual([]);
  });
});

describe('the files that containers are given', () => {
  test('Temporal is told in Compose what it is told by npm start', () => {
    const dynamicConfig = parse(repositoryFile('deploy/temporal/dynamic-config.yaml')) as Record<
      string,
      [{ value: unknown }]
    >;
    const embedded = repositoryFile('src/dev/embedded/infrastructure.ts');
    const told = [...embedded.matchAll(/'((?:system|matching|history)\.[A-Za-z]+)': (true|\d+)/g)];
    expect(told.length).toBeGreaterThan(3);
    for (const [, key = '', value] of told) expect(String(dynamicConfig[key]?.[0].value), key).toBe(value);
  });

  test.each(['postgres/create-databases.sh', 'temporal/set-up-schema.sh', 'temporal/create-namespace.sh'])(
    '%s may be run and stops at the first error',
    (path) => {
      const { mode } = statSync(new URL(`../../../deploy/${path}`, import.meta.url));
      expect(mode & 0o111).toBe(0o111);
      expect(repositoryFile(`deploy/${path}`)).toMatch(/^set -eu/m);
    },
  );

  test('every variable that a script reads is given to its container', () => {
    const scripts = {
      postgres: 'deploy/postgres/create-databases.sh',
      'temporal-schema': 'deploy/temporal/set-up-schema.sh',
      'temporal-namespace': 'deploy/temporal/create-namespace.sh',
    };
    for (const [service, path] of Object.entries(scripts)) {
      const read = repositoryFile(path).match(/\$\{?([A-Z][A-Z_]+)/g) ?? [];
      // The image of PostgreSQL sets this one itself.
      const names = read.map((text) => text.replace(/\W/g, '')).filter((name) => name !== 'POSTGRES_USER');
      expect(Object.keys(composeService(service).environment ?? {})).toEqual(expect.arrayContaining(names));
    }
  });
});
