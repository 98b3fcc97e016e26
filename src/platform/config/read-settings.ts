import { weakSecretProblems } from './development-values.ts';
import { SETTINGS, type Setting, type SettingName } from './settings.ts';

/** Names every setting that is missing or wrong; safe to print, for it never holds a value of a secret. */
export class InvalidSettingsError extends Error {
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`Settings are not usable:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.name = 'InvalidSettingsError';
    this.problems = problems;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Checked access to the settings in `env`; throws InvalidSettingsError. */
export function readSettings(env: Environment) {
  const problems = [...unknownNames(env), ...wrongValues(env), ...contradictions(env)];
  if (problems.length > 0) throw new InvalidSettingsError(problems);
  const text = (name: SettingName): string => settingValue(env, name) ?? '';
  return {
    text,
    integer: (name: SettingName): number => Number(text(name)),
    boolean: (name: SettingName): boolean => text(name) === 'true',
    list: (name: SettingName): string[] => splitList(text(name)),
  };
}

/** The settings in force, secrets replaced, for the log line at start. */
export function redactedSettings(env: Environment): Record<string, string> {
  const shown: Record<string, string> = {};
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    const definition: Setting = SETTINGS[name];
    shown[name] = definition.secret ? '[redacted]' : (settingValue(env, name) ?? '');
  }
  return shown;
}

function settingValue(env: Environment, name: SettingName): string | undefined {
  const given = env[name]?.trim();
  const definition: Setting = SETTINGS[name];
  return given === undefined || given === '' ? definition.fallback : given;
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** A misspelt name would otherwise be a setting that silently keeps its default. */
function unknownNames(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith('HELIOGRAPH_') && !(name in SETTINGS) && !OTHER_NAMES.test(name))
    .map((name) => `${name} is not a setting`);
}

/** Read by the embedded start-up and its launcher, not by the service itself. */
const OTHER_NAMES = /^HELIOGRAPH_(EMBEDDED_|TEMPORAL_BIN$|MINIO_BIN$|CHROMIUM$|TEST_)/;

function wrongValues(env: Environment): string[] {
  const problems: string[] = [];
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    const value = settingValue(env, name);
    const problem = value === undefined ? 'is required' : problemWith(SETTINGS[name], value);
    if (problem !== null) problems.push(`${name} ${problem} (${SETTINGS[name].about})`);
  }
  return problems;
}

function problemWith(definition: Setting, value: string): string | null {
  switch (definition.kind) {
    case 'integer': {
      const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER } = definition;
      const number = Number(value);
      const fits = /^-?\d+$/.test(value) && number >= minimum && number <= maximum;
      return fits ? null : `must be a whole number from ${minimum} to ${maximum}`;
    }
    case 'boolean':
      return value === 'true' || value === 'false' ? null : 'must be true or false';
    case 'choice':
      return definition.choices?.includes(value) ? null : `must be one of ${definition.choices?.join(', ')}`;
    case 'url':
      return URL.canParse(value) ? null : 'must be an absolute URL';
    default:
      return null;
  }
}

/** Rules that concern more than one setting. */
function contradictions(env: Environment): string[] {
  const problems: string[] = [];
  const production = settingValue(env, 'HELIOGRAPH_MODE') === 'production';
  if (production && settingValue(env, 'HELIOGRAPH_WEBHOOK_ALLOW_HTTP') === 'true') {
    problems.push('HELIOGRAPH_WEBHOOK_ALLOW_HTTP must be false in production mode');
  }
  problems.push(...sandboxProblems(env, production));
  if (production) problems.push(...weakSecretProblems(secretsIn(env)));
  const publicUrl = settingValue(env, 'HELIOGRAPH_PUBLIC_URL');
  if (publicUrl !== undefined && !publicUrl.startsWith('https://')) {
    problems.push('HELIOGRAPH_PUBLIC_URL must start with https:// because media URLs are https');
  }
  const httpsPort = Number(settingValue(env, 'HELIOGRAPH_HTTPS_PORT') ?? '-1');
  const certificate =
    settingValue(env, 'HELIOGRAPH_TLS_CERT_FILE') && settingValue(env, 'HELIOGRAPH_TLS_KEY_FILE');
  if (httpsPort >= 0 && !certificate) {
    problems.push('HELIOGRAPH_HTTPS_PORT needs HELIOGRAPH_TLS_CERT_FILE and HELIOGRAPH_TLS_KEY_FILE');
  }
  const schedule = splitList(settingValue(env, 'HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS') ?? '');
  if (schedule.length > 50 || schedule.some((seconds) => !/^\d{1,6}$/.test(seconds))) {
    problems.push('HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS must be up to 50 whole numbers of seconds');
  }
  return [...problems, ...openIdContradictions(env, production)];
}

function secretsIn(env: Environment) {
  return {
    appSecrets: splitList(settingValue(env, 'HELIOGRAPH_UPSTREAM_APP_SECRETS') ?? ''),
    verifyToken: settingValue(env, 'HELIOGRAPH_UPSTREAM_VERIFY_TOKEN') ?? '',
    encryptionKeys: settingValue(env, 'HELIOGRAPH_ENCRYPTION_KEYS') ?? '',
  };
}

function openIdContradictions(env: Environment, production: boolean): string[] {
  const names = [
    'HELIOGRAPH_OIDC_ISSUER',
    'HELIOGRAPH_OIDC_CLIENT_ID',
    'HELIOGRAPH_OIDC_CLIENT_SECRET',
  ] as const;
  const [issuer = '', ...others] = names.map((name) => settingValue(env, name) ?? '');
  if (issuer === '' && others.every((value) => value === '')) return [];
  if (others.includes('') || issuer === '') return [`${names.join(', ')} must be set together`];
  const protocol = URL.parse(issuer)?.protocol;
  if (protocol === 'https:' || (protocol === 'http:' && !production)) return [];
  return ['HELIOGRAPH_OIDC_ISSUER must be an https:// URL'];
}

/** The sandbox asks for no password: it is reached on this machine, and not by an installation. */
function sandboxProblems(env: Environment, production: boolean): string[] {
  const names = ['HELIOGRAPH_SANDBOX_CONTROL_URL', 'HELIOGRAPH_SANDBOX_RECEIVER_URL'] as const;
  return names.flatMap((name) => {
    const value = settingValue(env, name) ?? '';
    if (value === '') return [];
    if (production) return [`${name} must not be set in production mode`];
    const url = URL.parse(value);
    const isLoopback = ['127.0.0.1', '[::1]', 'localhost'].includes(url?.hostname ?? '');
    return url?.protocol === 'http:' && isLoopback ? [] : [`${name} must be an http:// URL of this machine`];
  });
}
