import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import ipaddr from 'ipaddr.js';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import packageJson from '../../../package.json' with { type: 'json' };
import { loadConfig } from '../../../src/platform/config/config.ts';
import { InvalidSettingsError } from '../../../src/platform/config/read-settings.ts';
import type { Setting } from '../../../src/platform/config/setting.ts';
import { SETTINGS } from '../../../src/platform/config/settings.ts';
import {
  COMPOSE,
  COMPOSE_TEXT,
  type ComposeService,
  composeService,
  repositoryFile,
  substitute,
  variableLines,
  variablesIn,
} from './compose-file.ts';
import { prepareFolder } from './prepared-folder.ts';

/** Processes of ours; the rest are servers of others. */
const OWN_SERVICES = ['migrate', 'api', 'worker'];
const SERVICES = Object.entries(COMPOSE.services);
const RUNNING = SERVICES.filter(([, service]) => service.restart === 'unless-stopped');
const SECRETS_FOLDER = '/run/secrets/';

const { folder: prepared, said, fileOf: preparedFile } = prepareFolder();

/** What the service gets to read, with what an operator has to fill in. */
function settingsOf(name: string, filledIn: Record<string, string> = {}): Record<string, string> {
  const settings: Record<string, string> = {
    ...variableLines(repositoryFile('deploy/defaults.env')),
    ...variableLines(preparedFile('heliograph.env')),
    ...filledIn,
  };
  for (const [key, value] of Object.entries(composeService(name).environment ?? {})) {
    if (!value.startsWith(SECRETS_FOLDER)) settings[key] = value;
    else {
      const setting = key.replace(/_FILE$/, '');
      settings[setting] ??= preparedFile(`secrets/${value.slice(SECRETS_FOLDER.length)}`);
    }
  }
  return settings;
}

const FILLED_IN = {
  HELIOGRAPH_PUBLIC_URL: 'https://gateway.example',
  HELIOGRAPH_UPSTREAM_APP_SECRETS: '0123456789abcdef-new,0123456789abcdef-old',
};

function networksOf({ networks = [] }: ComposeService): string[] {
  return Array.isArray(networks) ? networks : Object.keys(networks);
}

function existsInRepository(path: string): boolean {
  return existsSync(new URL(`../../../${path}`, import.meta.url));
}

describe('docker-compose.yml', () => {
  test('uses no setting that the service does not have', () => {
    const texts = [
      COMPOSE_TEXT,
      ...['defaults.env', 'heliograph.example.env'].map((name) => repositoryFile(`deploy/${name}`)),
    ];
    const used = texts.flatMap((text) => text.match(/\bHELIOGRAPH_[A-Z0-9_]+/g) ?? []);
    expect(used.length).toBeGreaterThan(10);
    expect(
      [...new Set(used)].filter((name) => !(name.replace(/_FILE$/, '') in SETTINGS || name in SETTINGS)),
    ).toEqual([]);
  });

  test.each(OWN_SERVICES)(
    'gives %s every setting of heliograph.env, which counts above the defaults',
    (name) => {
      expect(composeService(name).env_file?.map(substitute)).toEqual([
        'deploy/defaults.env',
        './heliograph.env',
      ]);
      // What counts above heliograph.env is fixed for good: nothing there is a choice of the operator.
      const fixed = Object.keys(composeService(name).environment ?? {});
      expect(
        fixed.filter((setting) => setting in variableLines(repositoryFile('deploy/defaults.env'))),
      ).toEqual([]);
    },
  );

  test.each(OWN_SERVICES)(
    'gives %s settings that the service accepts, once two values are filled in',
    (name) => {
      const config = loadConfig(settingsOf(name, FILLED_IN));
      expect(config.mode).toBe('production');
      const [role, password] =
        name === 'migrate'
          ? ['heliograph_owner', preparedFile('secrets/owner-database-password')]
          : ['heliograph_app', preparedFile('secrets/database-password')];
      expect(config.database.url).toBe(`postgresql://${role}:${password}@postgres:5432/heliograph`);
      expect(config.objectStore.secretKey).toBe(preparedFile('secrets/object-store-secret-key'));
    },
  );

  test('the role of the machine stands in for keys once both of them are emptied', () => {
    const { HELIOGRAPH_OBJECT_STORE_SECRET_KEY, ...others } = settingsOf('api', FILLED_IN);
    const empty = join(prepared, 'secrets/oidc-client-secret');
    const emptied = {
      HELIOGRAPH_OBJECT_STORE_CREDENTIALS: 'role',
      HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: '',
      HELIOGRAPH_OBJECT_STORE_SECRET_KEY_FILE: empty,
    };
    expect(loadConfig({ ...others, ...emptied }).objectStore.secretKey).toBe('');
    const kept = { ...emptied, HELIOGRAPH_OBJECT_STORE_SECRET_KEY_FILE: '' };
    for (const rest of [
      { ...emptied, HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: others.HELIOGRAPH_OBJECT_STORE_ACCESS_KEY },
      { ...kept, HELIOGRAPH_OBJECT_STORE_SECRET_KEY },
    ]) {
      expect(() => loadConfig({ ...others, ...rest })).toThrow('has no effect');
    }
  });

  test('without them it is refused, so that nobody runs with a value from here', () => {
    expect(said).toContain('HELIOGRAPH_PUBLIC_URL');
    expect(said).toContain('app-secrets');
    expect(said).toMatch(/still to do: PROXY_TLS .*internal/);
    expect(() => loadConfig(settingsOf('api'))).toThrow(InvalidSettingsError);
  });

  test('gives every secret that the service requires as a file, and none as a variable', () => {
    for (const [name, setting] of Object.entries(SETTINGS as Record<string, Setting>)) {
      if (setting.secret !== true || setting.fallback !== undefined) continue;
      expect(composeService('api').environment?.[`${name}_FILE`], name).toMatch(SECRETS_FOLDER);
    }
    for (const [name, service] of SERVICES) {
      for (const [key, value] of Object.entries(service.environment ?? {})) {
        if (/PASSWORD|PWD|SECRET/.test(key)) expect(value, `${name} ${key}`).toMatch(SECRETS_FOLDER);
        if (!value.startsWith(SECRETS_FOLDER)) continue;
        expect(service.secrets, name).toContain(value.slice(SECRETS_FOLDER.length));
        // Ours and Grafana read files by themselves.
        if (!OWN_SERVICES.includes(name) && name !== 'grafana')
          expect(service.entrypoint?.join(' '), name).toContain('with-secrets.sh');
      }
    }
  });

  test.each(SERVICES)('%s is pinned to a version', (_name, service) => {
    expect(substitute(service.image ?? '')).toMatch(
      /^[a-z0-9/.-]+:v?[0-9][A-Za-z0-9.-]*(@sha256:[0-9a-f]{64})?$/,
    );
    if (service.build === undefined) return;
    const folder = service.build === '.' ? '' : `${service.build}/`;
    expect(existsInRepository(`${folder}Dockerfile`)).toBe(true);
  });

  test('the image of the service carries its version', () => {
    for (const name of OWN_SERVICES) {
      expect(substitute(composeService(name).image ?? '')).toBe(`heliograph:${packageJson.version}`);
    }
  });

  test.each(SERVICES)('%s mounts only volumes and files that exist', (_name, service) => {
    for (const mount of service.volumes ?? []) {
      const [source = ''] = substitute(mount).split(':');
      if (source.startsWith('./')) expect(existsInRepository(source.slice(2)), source).toBe(true);
      else expect(Object.keys(COMPOSE.volumes)).toContain(source);
    }
  });

  test.each(SERVICES)(
    '%s waits for services that exist and can reach the state it waits for',
    (_name, service) => {
      if (Array.isArray(service.depends_on)) return;
      for (const [name, { condition, required }] of Object.entries(service.depends_on ?? {})) {
        const other = composeService(name);
        // Where the operator brings this server, nobody waits for ours.
        if (!service.profiles?.every((profile) => other.profiles?.includes(profile)))
          expect(required, name).toBe(false);
        if (condition === 'service_healthy') expect(other.healthcheck?.test, name).toBeDefined();
        else {
          expect(condition).toBe('service_completed_successfully');
          expect(other.restart, `${name} must end`).toMatch(/^on-failure/);
        }
      }
    },
  );

  test('neither the API nor migrate waits for Temporal or the object store: upstream needs PostgreSQL only', () => {
    expect(composeService('api').depends_on).toEqual({
      migrate: { condition: 'service_completed_successfully' },
    });
    expect(Object.keys(composeService('migrate').depends_on ?? {})).toEqual(['postgres']);
  });

  test('nothing but the proxy is open to other machines, and plain http only to lead to https', () => {
    for (const [name, service] of SERVICES) {
      for (const port of (service.ports ?? []).map(substitute)) {
        if (name === 'proxy' && /:(80|443)$/.test(port)) continue;
        expect(port, name).toMatch(/^127\.0\.0\.1:/);
      }
    }
    expect(composeService('api').ports).toBeUndefined();
  });

  test('the port for operators is one of the proxy, on this machine alone unless .env says otherwise', () => {
    const { services } = parse(repositoryFile('deploy/operators-port.yml')) as typeof COMPOSE;
    expect(Object.keys(services)).toEqual(['proxy', 'api']);
    expect(services.proxy?.ports?.map(substitute)).toEqual(['127.0.0.1:8090:8090']);
    const settings = { ...settingsOf('api', FILLED_IN), ...services.api?.environment };
    expect(loadConfig(settings).portal.operatorListen).toBe('0.0.0.0:8090');
    const [site = ''] = repositoryFile('deploy/caddy/Caddyfile').match(/^http:\/\/:8090 \{[^}]+\}/m) ?? [];
    expect(site).toContain('import apis 8090');
    // Nothing of it unless it is asked for.
    expect(COMPOSE_TEXT).not.toContain('8090');
  });

  test('networks part what need not talk', () => {
    expect(networksOf(composeService('proxy'))).toEqual(['outside', 'edge']);
    expect(networksOf(composeService('postgres'))).toEqual(['database']);
    expect(networksOf(composeService('object-store'))).toEqual(['storage']);
    for (const name of ['edge', 'database', 'temporal', 'storage', 'monitoring']) {
      expect(COMPOSE.networks[name], name).toMatchObject({ internal: true });
    }
    const withOutside = SERVICES.filter(([, service]) => networksOf(service).includes('outbound'));
    expect(withOutside.map(([name]) => name).sort()).toEqual(OWN_SERVICES.toSorted());
  });

  test('the API trusts the network of the proxy', () => {
    const subnet = /EDGE_SUBNET:-([0-9./]+)/.exec(COMPOSE_TEXT)?.[1];
    expect(loadConfig(settingsOf('api', FILLED_IN)).api.trustProxy).toEqual([subnet]);
    // From these Docker gives the other networks theirs.
    const address = ipaddr.parse(String(subnet?.split('/')[0]));
    for (const pool of ['172.16.0.0/12', '192.168.0.0/16'])
      expect(address.match(ipaddr.parseCIDR(pool))).toBe(false);
  });

  test.each(RUNNING)(
    '%s has a limit of memory, logs that do not grow, and no privileges',
    (name, service) => {
      expect(service.deploy?.resources?.limits?.memory).toBeDefined();
      expect(service.logging?.options).toMatchObject({ 'max-size': '20m' });
      expect(service.cap_drop).toEqual(['ALL']);
      expect(service.security_opt).toEqual(['no-new-privileges:true']);
      expect(service.read_only).toBe(true);
      // Its image names none, unlike those of the others.
      if (name === 'proxy') expect(service.user).toMatch(/^[1-9]/);
    },
  );

  test('there are two APIs and two workers unless .env says otherwise', () => {
    for (const name of ['api', 'worker']) {
      expect(substitute(composeService(name).deploy?.replicas ?? '')).toBe('2');
    }
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

  test('names exactly the variables that docker-compose.yml reads, each with the value that holds without it', () => {
    const named = lines.flatMap((line) => /^#?([A-Z_]+)=(.*)$/.exec(line)?.slice(1, 3) ?? []);
    const values = Object.fromEntries(
      named.flatMap((name, at) => (at % 2 === 0 ? [[name, named[at + 1]]] : [])),
    );
    const used = new Set(variablesIn(COMPOSE_TEXT));
    expect(Object.keys(values).sort()).toEqual([...used, 'COMPOSE_PROFILES'].sort());
    for (const name of used) {
      expect(substitute(COMPOSE_TEXT.match(new RegExp(`\\$\\{${name}:-[^}]*\\}`))?.[0] ?? ''), name).toBe(
        values[name],
      );
    }
  });
});

describe('monitoring', () => {
  const dashboards = ['endpoints', 'flow', 'postgresql', 'processes', 'temporal'].map((name) =>
    repositoryFile(`deploy/monitoring/grafana/dashboards/${name}.json`),
  );

  test('rules and dashboards ask for metrics that docs/operators/monitoring.md explains', () => {
    const explained = new Set(repositoryFile('docs/operators/monitoring.md').match(/(?<=`)[a-z_]+(?=`)/g));
    for (const text of [repositoryFile('charts/heliograph/files/alert-rules.yaml'), ...dashboards]) {
      const asked = [...text.matchAll(/\bheliograph_([a-z_]+?)(?:_bucket)?\b/g)].map(([, name = '']) => name);
      expect(asked.length).toBeGreaterThan(0);
      expect(asked.filter((name) => !explained.has(name))).toEqual([]);
    }
  });

  test('every panel has a title, a question and the data source that is provided', () => {
    const { datasources } = parse(
      repositoryFile('deploy/monitoring/grafana/provisioning/datasources/prometheus.yml'),
    ) as { datasources: { uid: string }[] };
    for (const dashboard of dashboards) {
      const { panels } = JSON.parse(dashboard) as {
        panels: { title: string; datasource: { uid: string }; targets: { expr: string }[] }[];
      };
      for (const { title, datasource, targets } of panels) {
        expect(title).not.toBe('');
        expect(datasource.uid).toBe(datasources[0]?.uid);
        expect(targets.every(({ expr }) => expr !== '')).toBe(true);
      }
    }
  });
});

describe('the files that containers are given', () => {
  test('Temporal is told in Compose what it is told by npm start', () => {
    const dynamicConfig = parse(repositoryFile('deploy/temporal/dynamic-config.yaml')) as Record<
      string,
      [{ value: unknown }]
    >;
    const embedded = repositoryFile('dev/embedded/infrastructure.ts');
    const told = [...embedded.matchAll(/'((?:system|matching|history)\.[A-Za-z]+)': (true|\d+)/g)];
    expect(told.length).toBeGreaterThan(3);
    for (const [, key = '', value] of told) expect(String(dynamicConfig[key]?.[0].value), key).toBe(value);
  });

  test('an upgrade first makes the files that a newer version reads', () => {
    const lines = repositoryFile('deploy/upgrade.sh').split('\n');
    const prepared = lines.indexOf('sh deploy/prepare.sh');
    expect(prepared).toBeGreaterThan(0);
    expect(
      lines.findIndex((line) => /^\s*(until )?docker compose/.test(line) && line.includes('migrate')),
    ).toBeGreaterThan(prepared);
  });

  test('every script may be run and stops at the first error', () => {
    const scripts = (readdirSync(join(prepared, 'deploy'), { recursive: true }) as string[]).filter((path) =>
      path.endsWith('.sh'),
    );
    expect(scripts.length).toBeGreaterThan(6);
    for (const path of scripts) {
      expect(statSync(join(prepared, 'deploy', path)).mode & 0o111, path).not.toBe(0);
      expect(repositoryFile(`deploy/${path}`), path).toMatch(/^set -eu/m);
    }
  });
});
