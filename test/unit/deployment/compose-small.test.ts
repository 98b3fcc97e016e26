import { describe, expect, test } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };
import { loadConfig } from '../../../src/platform/config/config.ts';
import { V8_FLAGS } from '../../../src/platform/config/process-options.ts';
import {
  COMPOSE,
  COMPOSE_TEXT,
  type ComposeService,
  composeService,
  readCompose,
  repositoryFile,
  substitute,
  variableLines,
  variablesIn,
} from './compose-file.ts';
import { prepareFolder } from './prepared-folder.ts';

const TEXT = repositoryFile('docker-compose.small.yml');
const SMALL = readCompose('docker-compose.small.yml');
const SERVICES = Object.entries(SMALL.services);
const MIB = { m: 1, g: 1_024 } as Readonly<Record<string, number>>;
const MEMORY_MIB = 2_048;

const { fileOf: preparedFile } = prepareFolder();

function smallService(name: string): ComposeService {
  const service = SMALL.services[name];
  if (service === undefined) throw new Error(`docker-compose.small.yml has no service ${name}`);
  return service;
}

function memoryMib({ deploy }: ComposeService): number {
  const [, amount, unit = ''] = /^(\d+)([mg])$/.exec(deploy?.resources?.limits?.memory ?? '') ?? [];
  return Number(amount) * (MIB[unit] ?? Number.NaN);
}

/** What the service reads, with what `prepare.sh` makes and an operator fills in. */
function settings(): Record<string, string> {
  const read: Record<string, string> = {
    ...variableLines(repositoryFile('deploy/defaults.env')),
    ...variableLines(preparedFile('heliograph.env')),
    HELIOGRAPH_PUBLIC_URL: 'https://gateway.example',
    HELIOGRAPH_UPSTREAM_APP_SECRETS: '0123456789abcdef',
  };
  for (const [name, value] of Object.entries(smallService('api').environment ?? {})) {
    const secret = value.replace('/run/secrets/', '');
    if (secret === value) read[name] = value;
    else read[name.replace(/_FILE$/, '')] ??= preparedFile(`secrets/${secret}`);
  }
  return read;
}

/** What may differ from the service of the same name in docker-compose.yml, in which the rest is the same. */
const DIFFERENT: Record<string, string[]> = {
  proxy: ['image', 'profiles', 'depends_on', 'deploy'],
  postgres: ['profiles', 'command', 'deploy', 'shm_size'],
  'object-store': ['profiles', 'environment', 'secrets', 'deploy'],
};

function without(service: ComposeService, names: readonly string[]): object {
  return Object.fromEntries(Object.entries(service).filter(([name]) => !names.includes(name)));
}

describe('docker-compose.small.yml', () => {
  test('has five services at most, each with a limit of memory, with 2 GB in all', () => {
    expect(SERVICES.map(([name]) => name)).toEqual(['proxy', 'api', 'postgres', 'temporal', 'object-store']);
    const sum = SERVICES.reduce((total, [, service]) => total + memoryMib(service), 0);
    expect(sum).toBeLessThanOrEqual(MEMORY_MIB);
  });

  test.each(Object.entries(DIFFERENT))('%s is that of docker-compose.yml but for its size', (name, names) => {
    expect(without(smallService(name), names)).toEqual(without(composeService(name), names));
  });

  test('Temporal has what its three services have in docker-compose.yml', () => {
    const { environment = {}, image } = smallService('temporal');
    const {
      PROMETHEUS_ENDPOINT: _,
      DYNAMIC_CONFIG_FILE_PATH: path,
      ...ofServer
    } = composeService('temporal').environment ?? {};
    const { TEMPORAL_ADDRESS: __, ...ofNamespace } = composeService('temporal-namespace').environment ?? {};
    const ofSchema = composeService('temporal-schema').environment;
    expect(environment).toMatchObject({ ...ofServer, ...ofNamespace, ...ofSchema });
    const version = (text = '') => /:([\d.]+)$/m.exec(text)?.[1];
    expect(version(image)).toBe(version(composeService('temporal').image));
    const dockerfile = repositoryFile('deploy/temporal/Dockerfile');
    expect(dockerfile).toContain(`COPY dynamic-config.yaml ${path}\n`);
    expect(dockerfile).toContain(`ENV DYNAMIC_CONFIG_FILE_PATH=${path}\n`);
    for (const name of ['temporal', 'temporal-schema'])
      expect(dockerfile).toContain(`FROM ${composeService(name).image}`);
  });

  test('runs all of the service in one process, with its version and the flags of the others', () => {
    const { command, image } = smallService('api');
    expect(substitute(image ?? '')).toBe(`heliograph:${packageJson.version}`);
    const flags = [...V8_FLAGS, '--import', './bin/stripped-types.js'];
    expect(command).toEqual(['node', ...flags, 'src/main.ts', 'run']);
  });

  test('gives the service settings that it accepts, once two values are filled in', () => {
    const config = loadConfig(settings());
    expect(config.mode).toBe('production');
    const { environment = {} } = smallService('temporal');
    expect(config.temporal).toMatchObject({ address: 'temporal:7233', namespace: environment.NAMESPACE });
    const { environment: store = {} } = smallService('object-store');
    expect(config.objectStore).toMatchObject({
      url: 'http://object-store:7070',
      accessKey: store.ROOT_ACCESS_KEY,
    });
    expect(config.objectStore.secretKey).toBe(preparedFile('secrets/object-store-secret-key'));
    expect(config.database.url).toContain('@postgres:5432/heliograph');
    expect(config.api.port).toBe(8080);
  });

  test('gives every secret of the service that docker-compose.yml gives, by file', () => {
    const secretsOf = (environment: Record<string, string> = {}) =>
      Object.keys(environment).filter((name) => name.endsWith('_FILE'));
    expect(secretsOf(smallService('api').environment).toSorted()).toEqual(
      secretsOf(composeService('api').environment).toSorted(),
    );
    for (const [name, { environment = {}, secrets = [] }] of SERVICES)
      for (const value of Object.values(environment))
        if (value.startsWith('/run/secrets/'))
          expect(secrets, name).toContain(value.replace('/run/secrets/', ''));
  });

  test('has its names from docker-compose.yml, so that either serves the data of the other', () => {
    const names = ['services', 'networks', 'volumes', 'secrets'] as const;
    for (const part of names) {
      const known = Object.keys(COMPOSE[part]);
      expect(Object.keys(SMALL[part]).filter((name) => !known.includes(name))).toEqual([]);
    }
    for (const [name, secret] of Object.entries(SMALL.secrets)) expect(COMPOSE.secrets[name]).toEqual(secret);
    for (const [name, network] of Object.entries(SMALL.networks))
      expect(COMPOSE.networks[name]).toEqual(network);
    const known = new Set(variablesIn(COMPOSE_TEXT));
    expect(variablesIn(TEXT).filter((name) => !known.has(name))).toEqual([]);
  });

  test.each(SERVICES)(
    '%s is hardened, waits for nothing but PostgreSQL, and is pinned to a version',
    (_name, service) => {
      expect(service.cap_drop).toEqual(['ALL']);
      expect(service.security_opt).toEqual(['no-new-privileges:true']);
      expect(service.read_only).toBe(true);
      expect(service.restart).toBe('unless-stopped');
      expect(service.logging?.options).toMatchObject({ 'max-size': '20m' });
      expect(Object.keys(service.depends_on ?? {}).filter((name) => name !== 'postgres')).toEqual([]);
      expect(substitute(service.image ?? '')).toMatch(/:v?\d[\w.-]*(@sha256:[0-9a-f]{64})?$/);
    },
  );

  test('nothing but the proxy is open to other machines', () => {
    expect(SERVICES.filter(([, { ports }]) => ports !== undefined).map(([name]) => name)).toEqual(['proxy']);
  });
});
