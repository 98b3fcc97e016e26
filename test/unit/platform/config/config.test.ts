import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensureCertificate, type LocalCertificate } from '../../../../dev/embedded/certificate.ts';
import { configWarnings, loadConfig } from '../../../../src/platform/config/config.ts';
import { InvalidSettingsError, redactedSettings } from '../../../../src/platform/config/read-settings.ts';
import { SETTINGS } from '../../../../src/platform/config/settings.ts';

const RANDOM_KEY = Buffer.from(Array.from({ length: 32 }, (_, byte) => byte * 7)).toString('base64');

const REQUIRED = {
  HELIOGRAPH_DATABASE_URL: 'postgres://u:secret-password@db.example/heliograph',
  HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: 'access',
  HELIOGRAPH_OBJECT_STORE_SECRET_KEY: 'secret-key',
  HELIOGRAPH_PUBLIC_URL: 'https://gateway.example/',
  HELIOGRAPH_UPSTREAM_APP_SECRETS: 'secret-number-one, secret-number-two@900000000000101+7',
  HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: 'secret-token',
  HELIOGRAPH_ENCRYPTION_KEYS: `a:${RANDOM_KEY}`,
};

let directory: string;
let certificate: LocalCertificate;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'heliograph-config-'));
  certificate = await ensureCertificate(directory);
});
afterAll(() => rmSync(directory, { recursive: true }));

/** A file with this text, for a setting that is given by file. */
function fileOf(text: string): string {
  const path = join(directory, `value-${text.length}`);
  writeFileSync(path, text);
  return path;
}

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    loadConfig({ ...REQUIRED, ...env });
    return [];
  } catch (error) {
    return error instanceof InvalidSettingsError ? error.problems : [String(error)];
  }
}

describe('warnings', () => {
  const warningsOf = (env: Record<string, string>) =>
    configWarnings(loadConfig({ ...REQUIRED, ...env })).map((warning) => warning.split(' ', 1)[0]);

  test('name a proxy that nobody trusts, and development mode under a public name', () => {
    expect(warningsOf({})).toEqual(['HELIOGRAPH_TRUST_PROXY']);
    expect(warningsOf({ HELIOGRAPH_TRUST_PROXY: '172.16.0.0/12' })).toEqual([]);
    const tls = {
      HELIOGRAPH_TLS_CERT_FILE: certificate.certPath,
      HELIOGRAPH_TLS_KEY_FILE: certificate.keyPath,
      HELIOGRAPH_HTTPS_PORT: '8443',
    };
    expect(warningsOf(tls)).toEqual([]);
    expect(warningsOf({ HELIOGRAPH_MODE: 'development' })).toEqual(['HELIOGRAPH_MODE']);
    for (const host of ['127.0.0.1:8443', 'localhost', '[::1]:1']) {
      expect(
        warningsOf({ HELIOGRAPH_MODE: 'development', HELIOGRAPH_PUBLIC_URL: `https://${host}` }),
      ).toEqual([]);
    }
  });
});

describe('settings', () => {
  test('defaults are usable with only what is required, and the object cannot be changed', () => {
    const config = loadConfig(REQUIRED);
    expect(config.mode).toBe('production');
    expect(config.api.publicUrl).toBe('https://gateway.example');
    expect(config.upstream.appSecrets).toEqual([
      { secret: 'secret-number-one', wabaIds: null },
      { secret: 'secret-number-two', wabaIds: ['900000000000101', '7'] },
    ]);
    expect(config.webhooks.retryScheduleMs).toHaveLength(10);
    expect(() => Object.assign(config.webhooks, { allowHttp: true })).toThrow(TypeError);
  });

  test.each([
    ['HELIOGRAPH_UPSTREAM_APP_SECRETS', 'test-app-secret'],
    ['HELIOGRAPH_UPSTREAM_APP_SECRETS', 'test-app-secret@900000000000101'],
    ['HELIOGRAPH_UPSTREAM_APP_SECRETS', 'long-enough-secret,fifteen-letters'],
    ['HELIOGRAPH_UPSTREAM_VERIFY_TOKEN', 'heliograph-verify'],
    ['HELIOGRAPH_ENCRYPTION_KEYS', `b:${RANDOM_KEY},a:${Buffer.alloc(32, 1).toString('base64')}`],
  ])('%s is refused in production when everybody knows or guesses it: %s', (name, value) => {
    const problems = problemsOf({ [name]: value });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(name);
    expect(problems[0]).not.toContain(value);
    expect(problemsOf({ [name]: value, HELIOGRAPH_MODE: 'development' })).toEqual([]);
  });

  test('an app secret with an @ that no WABAs follow is one as it is', () => {
    const odd = ['some@secret-of-letters', 'some-secret-of-letters@', '@900000000000101-secret'];
    const config = loadConfig({ ...REQUIRED, HELIOGRAPH_UPSTREAM_APP_SECRETS: odd.join(',') });
    expect(config.upstream.appSecrets).toEqual(odd.map((secret) => ({ secret, wabaIds: null })));
  });

  test('everything that is missing is named at once', () => {
    let message = '';
    try {
      loadConfig({});
    } catch (error) {
      message = String(error);
    }
    for (const name of Object.keys(REQUIRED)) expect(message).toContain(name);
  });

  test('several wrong ones are told together, networks and keys among them, and by no stack trace', () => {
    const wrong = {
      HELIOGRAPH_TRUST_PROXY: 'not-a-network',
      HELIOGRAPH_WEBHOOK_ALLOW_CIDRS: '10.0.0.0/8,10.0.0.0/33',
      HELIOGRAPH_ENCRYPTION_KEYS: 'k1:YSBrZXkgdGhhdCBpcyBzaG9ydA==',
      HELIOGRAPH_DATABASE_URL: 'mysql://u:p@h/d',
      HELIOGRAPH_TEMPORAL_ADDRESS: 'temporal',
      HELIOGRAPH_API_PORT: 'eighty',
    };
    const problems = problemsOf(wrong);
    expect(problems.map((problem) => problem.split(' ', 1)[0]).toSorted()).toEqual(
      Object.keys(wrong).toSorted(),
    );
    expect(problems.join('\n')).not.toMatch(/Error|\bat |YSBrZXkg/);
  });

  test('a wrong entry of a list about webhooks names its setting', () => {
    const wrong = {
      HELIOGRAPH_WEBHOOK_DENY: '*.internal.example,no target!',
      HELIOGRAPH_WEBHOOK_NAT_PREFIXES: '2606:4700:a1b2::/97',
      HELIOGRAPH_WEBHOOK_PORTS: '443,https',
    };
    const problems = problemsOf(wrong);
    expect(problems.map((problem) => problem.split(' ', 1)[0]).toSorted()).toEqual(
      Object.keys(wrong).toSorted(),
    );
    expect(problems.join('\n')).toContain('"no target!"');
    for (const ports of ['0', '65536', ','])
      expect(problemsOf({ HELIOGRAPH_WEBHOOK_PORTS: ports })).toHaveLength(1);
  });

  test('webhooks go to the two https ports, and in development mode to any', () => {
    expect(loadConfig(REQUIRED).webhooks.ports).toEqual([443, 8443]);
    expect(loadConfig({ ...REQUIRED, HELIOGRAPH_WEBHOOK_PORTS: '443, 9443' }).webhooks.ports).toEqual([
      443, 9443,
    ]);
    expect(loadConfig({ ...REQUIRED, HELIOGRAPH_MODE: 'development' }).webhooks.ports).toEqual([]);
  });

  test('a single address is a network of its own', () => {
    const config = loadConfig({ ...REQUIRED, HELIOGRAPH_TRUST_PROXY: '10.0.0.7, fd00::7,10.1.0.0/16' });
    expect(config.api.trustProxy).toEqual(['10.0.0.7/32', 'fd00::7/128', '10.1.0.0/16']);
  });

  test.each([
    ['HELIOGRAPH_DATABASE_POOL_MAX', '1.5'],
    ['HELIOGRAPH_DATABASE_POOL_MAX', '1'],
    ['HELIOGRAPH_API_PORT', '70000'],
    ['HELIOGRAPH_MODE', 'prod'],
    ['HELIOGRAPH_WEBHOOK_ALLOW_HTTP', 'yes'],
    ['HELIOGRAPH_WEBHOOK_ALLOW_HTTP', 'true'],
    ['HELIOGRAPH_PUBLIC_URL', 'http://gateway.example'],
    ['HELIOGRAPH_TEMPORAL_UI_URL', 'not a url'],
    ['HELIOGRAPH_HTTPS_PORT', '8443'],
    ['HELIOGRAPH_TLS_CERT_FILE', '/nowhere/cert.pem'],
    ['HELIOGRAPH_TEMPORAL_API_KEY', 'secret-api-key'],
    ['HELIOGRAPH_TEMPORAL_TLS_SERVER_NAME', 'temporal.example'],
    ['HELIOGRAPH_OBJECT_STORE_CREDENTIALS', 'role'],
    ['HELIOGRAPH_OBJECT_STORE_ACCESS_KEY', ''],
    ['HELIOGRAPH_OBJECT_STORE_KMS_KEY_ID', 'a-key'],
    ['HELIOGRAPH_OBJECT_STORE_PREFIX', '/gateway'],
    ['HELIOGRAPH_DATABASE_URL', 'postgres://h/d?sslmode=prefer'],
    ['HELIOGRAPH_DATABASE_URL', 'postgres://h/d?sslmode=verify-full&sslrootcert=/nowhere/ca.pem'],
    ['HELIOGRAPH_DATABASE_URL', 'postgres://h/d?target_session_attrs=standby'],
    ['HELIOGRAPH_DATABASE_URL', 'postgres://h/d?options=-csearch_path%3Dx'],
    ['HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS', '5,x'],
    ['HELIOGRAPH_WEBHOK_TIMEOUT_MS', '1000'],
    ['HELIOGRAPH_SANDBOX_CONTROL_URL', 'http://127.0.0.1:8090'],
    ['HELIOGRAPH_SANDBOX_RECEIVER_URL', 'http://127.0.0.1:8091'],
  ])('%s=%s is refused by name', (name, value) => {
    expect(problemsOf({ [name]: value }).join('\n')).toContain(name);
  });

  test('links over http are for this machine in development mode, and for nobody else', () => {
    const development = { HELIOGRAPH_MODE: 'development' };
    const problem = 'HELIOGRAPH_PUBLIC_URL must start with https:// because media URLs are https';
    for (const host of ['127.0.0.1:8080', 'localhost:8080', '[::1]:8080']) {
      const settings = { HELIOGRAPH_PUBLIC_URL: `http://${host}` };
      expect(problemsOf({ ...settings, ...development })).not.toContain(problem);
      expect(problemsOf(settings)).toContain(problem);
    }
    for (const url of ['http://gateway.example', 'http://127.0.0.1.gateway.example', 'ftp://127.0.0.1'])
      expect(problemsOf({ HELIOGRAPH_PUBLIC_URL: url, ...development }).join()).toContain(
        'HELIOGRAPH_PUBLIC_URL',
      );
  });

  test('passwords can be switched off only where there is another way in', () => {
    const off = { HELIOGRAPH_PORTAL_PASSWORD_SIGN_IN: 'false' };
    expect(problemsOf(off)).toEqual([
      'HELIOGRAPH_PORTAL_PASSWORD_SIGN_IN can be false only with HELIOGRAPH_OIDC_ISSUER',
    ]);
    const oidc = {
      HELIOGRAPH_OIDC_ISSUER: 'https://login.example',
      HELIOGRAPH_OIDC_CLIENT_ID: 'portal',
      HELIOGRAPH_OIDC_CLIENT_SECRET: 'a-secret',
    };
    expect(problemsOf({ ...off, ...oidc })).toEqual([]);
    expect(problemsOf({ HELIOGRAPH_PORTAL_OPERATOR_LISTEN: '8090' })).toEqual([
      expect.stringContaining('HELIOGRAPH_PORTAL_OPERATOR_LISTEN must be host:port'),
    ]);
  });

  test('the sandbox is reached in development mode and on this machine only', () => {
    const name = 'HELIOGRAPH_SANDBOX_CONTROL_URL';
    const problems = (value: string) => problemsOf({ HELIOGRAPH_MODE: 'development', [name]: value });
    for (const good of ['', 'http://127.0.0.1:8090', 'http://localhost:1/', 'http://[::1]:8090']) {
      expect(problems(good)).toEqual([]);
    }
    for (const bad of ['http://10.0.0.1:8090', 'https://127.0.0.1', 'http://127.0.0.1.example', 'x']) {
      expect(problems(bad).join()).toContain(name);
    }
  });

  test('neither errors nor the settings shown at start hold a secret', () => {
    const shown = JSON.stringify(redactedSettings(REQUIRED)) + problemsOf({ HELIOGRAPH_MODE: 'x' }).join();
    for (const secret of ['secret-password', 'secret-key', 'secret-one', 'secret-token']) {
      expect(shown).not.toContain(secret);
    }
  });

  test('a secret that is not given is not shown as if it were', () => {
    expect(redactedSettings(REQUIRED)).toMatchObject({
      HELIOGRAPH_TEMPORAL_API_KEY: '',
      HELIOGRAPH_DATABASE_DIRECT_URL: '',
      HELIOGRAPH_ENCRYPTION_KEYS: '[redacted]',
    });
  });

  test('each can be given by file, once', () => {
    const { HELIOGRAPH_ENCRYPTION_KEYS: keys, ...others } = REQUIRED;
    const given = { ...others, HELIOGRAPH_ENCRYPTION_KEYS_FILE: fileOf(`${keys}\n`) };
    expect(loadConfig(given).encryptionKeys).toBe(keys);
    expect(JSON.stringify(redactedSettings(given))).not.toContain(RANDOM_KEY);
    expect(loadConfig({ ...REQUIRED, HELIOGRAPH_ENCRYPTION_KEYS_FILE: '' }).encryptionKeys).toBe(keys);
    expect(problemsOf(given)).toEqual([
      'HELIOGRAPH_ENCRYPTION_KEYS and HELIOGRAPH_ENCRYPTION_KEYS_FILE are both set: one of them is enough',
    ]);
    expect(problemsOf({ HELIOGRAPH_LOG_LEVEL_FILE: '/nowhere/level' })).toEqual([
      'HELIOGRAPH_LOG_LEVEL_FILE names a file that cannot be read (ENOENT)',
    ]);
    expect(problemsOf({ HELIOGRAPH_LOG_LEVEL_FILE: fileOf('loud') }).join()).toContain(
      'HELIOGRAPH_LOG_LEVEL',
    );
  });

  test('of a certificate and its key, both are given and belong together', () => {
    const { certPath, keyPath, caPath } = certificate;
    const tls = { HELIOGRAPH_TEMPORAL_TLS: 'true', HELIOGRAPH_TEMPORAL_TLS_CERT_FILE: certPath };
    expect(problemsOf({ ...tls, HELIOGRAPH_TEMPORAL_TLS_KEY_FILE: keyPath })).toEqual([]);
    expect(problemsOf(tls).join()).toContain('must be set together');
    const wrong = {
      ...tls,
      HELIOGRAPH_TEMPORAL_TLS_CERT_FILE: caPath,
      HELIOGRAPH_TEMPORAL_TLS_KEY_FILE: keyPath,
    };
    expect(problemsOf(wrong).join()).toContain('do not hold a certificate and its key');
  });

  test('one that was removed is named with what to do, and another unknown name too', () => {
    const given = {
      HELIOGRAPH_TEMPORAL_UI_PUBLIC_URL: 'https://temporal.example',
      HELIOGRAPH_RETRY_WORKFLOWS_MAX: '1000',
      HELIOGRAPH_LOG_LEVLE: 'info',
    };
    expect(problemsOf(given)).toEqual([
      expect.stringMatching(/^HELIOGRAPH_TEMPORAL_UI_PUBLIC_URL was removed: delete it; /),
      expect.stringMatching(/^HELIOGRAPH_RETRY_WORKFLOWS_MAX was removed: delete it; at most 200 /),
      'HELIOGRAPH_LOG_LEVLE is not a setting',
    ]);
  });

  test('what Kubernetes sets for services of our name is no setting and breaks nothing', () => {
    const address = 'tcp://10.0.0.1:8080';
    const injected = ['HELIOGRAPH', 'HELIOGRAPH_API', 'HELIOGRAPH_WORKER_HEALTH', 'HELIOGRAPH_HTTPS'].flatMap(
      (service) => [
        [`${service}_SERVICE_HOST`, '10.0.0.1'],
        [`${service}_SERVICE_PORT`, '8080'],
        [`${service}_SERVICE_PORT_HTTP_API`, '8080'],
        [`${service}_PORT`, address],
        [`${service}_PORT_8080_TCP`, address],
        [`${service}_PORT_8080_TCP_PROTO`, 'tcp'],
        [`${service}_PORT_8080_TCP_PORT`, '8080'],
        [`${service}_PORT_8080_TCP_ADDR`, '10.0.0.1'],
      ],
    );
    const env = Object.fromEntries(injected);
    expect(problemsOf(env)).toEqual([]);
    expect(loadConfig({ ...REQUIRED, ...env })).toEqual(loadConfig(REQUIRED));
    expect(redactedSettings(env)).toEqual(redactedSettings({}));
  });

  test('contacts for security are addresses that can be followed', () => {
    const problems = (text: string) => problemsOf({ HELIOGRAPH_SECURITY_CONTACTS: text });
    for (const right of ['', 'mailto:a@b.example', 'https://b.example/report, tel:+1-201-555-0123']) {
      expect(problems(right)).toEqual([]);
    }
    for (const wrong of [
      'a@b.example',
      'http://b.example',
      'mailto:a@b.example,x',
      'https://b.example\nExpires: x',
    ]) {
      expect(problems(wrong).join()).toContain('HELIOGRAPH_SECURITY_CONTACTS must be');
    }
  });

  test('every setting says what it is for', () => {
    for (const { about } of Object.values(SETTINGS)) expect(about.length).toBeGreaterThan(5);
  });
});
