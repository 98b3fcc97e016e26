import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import { configWarnings } from '../../../../src/platform/config/config-warnings.ts';
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
      HELIOGRAPH_TLS_CERT_FILE: '/a',
      HELIOGRAPH_TLS_KEY_FILE: '/b',
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
    ['HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS', '5,x'],
    ['HELIOGRAPH_WEBHOK_TIMEOUT_MS', '1000'],
    ['HELIOGRAPH_SANDBOX_CONTROL_URL', 'http://127.0.0.1:8090'],
    ['HELIOGRAPH_SANDBOX_RECEIVER_URL', 'http://127.0.0.1:8091'],
  ])('%s=%s is refused by name', (name, value) => {
    expect(problemsOf({ [name]: value }).join('\n')).toContain(name);
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

  test('every setting says what it is for', () => {
    for (const { about } of Object.values(SETTINGS)) expect(about.length).toBeGreaterThan(5);
  });
});
