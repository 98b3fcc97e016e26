import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import ipaddr from 'ipaddr.js';
import { parseEncryptionKeys } from '../crypto/secret-box.ts';
import { DatabaseUrlError, parseDatabaseUrl, tlsOptionsOf } from '../postgres/database-url.ts';
import type { Setting } from './setting.ts';
import { SETTINGS, type SettingName } from './settings.ts';
import { webhookProblems, webhookProxyProblems } from './webhook-problems.ts';

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
  const given = givenSettings(env);
  const { values } = given;
  const problems = [...given.problems, ...wrongValues(values), ...contradictions(values)];
  if (problems.length > 0) throw new InvalidSettingsError(problems);
  const text = (name: SettingName): string => settingValue(values, name) ?? '';
  return {
    text,
    /** Without slashes at its end: paths follow. */
    baseUrl: (name: SettingName): string => text(name).replace(/(?<!\/)\/+$/, ''),
    integer: (name: SettingName): number => Number(text(name)),
    boolean: (name: SettingName): boolean => text(name) === 'true',
    list: (name: SettingName): string[] => splitList(text(name)),
    networks: (name: SettingName): string[] => splitList(text(name)).map(asNetwork),
  };
}

/** The settings in force, secrets replaced, for the log line at start. */
export function redactedSettings(env: Environment): Record<string, string> {
  const { values } = givenSettings(env);
  const shown: Record<string, string> = {};
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    const definition: Setting = SETTINGS[name];
    const value = settingValue(values, name) ?? '';
    shown[name] = definition.secret && value !== '' ? '[redacted]' : value;
  }
  return shown;
}

/**
 * What Kubernetes sets in every container for a service whose name begins with ours, such as
 * HELIOGRAPH_API_PORT=tcp://10.0.0.1:8080 for `heliograph-api`: it is meant as no setting.
 */
const SERVICE_VARIABLE =
  /_SERVICE_(HOST|PORT(_[A-Z0-9_]{1,255})?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/;
const SERVICE_ADDRESS = /^(tcp|udp|sctp):\/\//;

/** The values of the settings as they are given: by their names, or in the files that `<name>_FILE` names. */
function givenSettings(env: Environment): { values: Environment; problems: string[] } {
  const values: Record<string, string> = {};
  const problems: string[] = [];
  for (const [name, text] of Object.entries(env)) {
    const value = text?.trim() ?? '';
    if (!name.startsWith('HELIOGRAPH_') || isServiceVariable(name, value)) continue;
    const ofFile = name.replace(/_FILE$/, '');
    if (name in SETTINGS) {
      if (value !== '') values[name] = value;
    } else if (ofFile in SETTINGS) {
      if (value === '') continue;
      if (env[ofFile]?.trim()) problems.push(`${ofFile} and ${name} are both set: one of them is enough`);
      else readInto(values, ofFile, { name, path: value }, problems);
    } else if (!OTHER_NAMES.test(name)) {
      // A misspelt name would otherwise be a setting that silently keeps its default.
      problems.push(`${name} is not a setting`);
    }
  }
  return { values, problems };
}

function isServiceVariable(name: string, value: string): boolean {
  if (name.endsWith('_PORT') && SERVICE_ADDRESS.test(value)) return true;
  return !(name in SETTINGS) && SERVICE_VARIABLE.test(name);
}

function readInto(
  values: Record<string, string>,
  setting: string,
  { name, path }: { name: string; path: string },
  problems: string[],
): void {
  try {
    values[setting] = readFileSync(path, 'utf8').trim();
  } catch (error) {
    problems.push(`${name} ${unreadable(error)}`);
  }
}

function unreadable(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  return `names a file that cannot be read (${code})`;
}

function settingValue(values: Environment, name: SettingName): string | undefined {
  const definition: Setting = SETTINGS[name];
  return values[name] || definition.fallback;
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
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
    case 'cidrs':
      return splitList(value).map(asNetwork).every(ipaddr.isValidCIDR)
        ? null
        : 'must be networks such as 10.1.0.0/16 or fd00::/8, separated by commas';
    case 'address':
      return value === '' || ADDRESS.test(value) ? null : 'must be host:port';
    case 'file':
      return value === '' ? null : fileProblem(value);
    case 'database':
      return value === '' ? null : databaseProblem(value);
    default:
      return null;
  }
}

const ADDRESS = /^(\[[0-9A-Fa-f:.]+\]|[^\s:/[\]]+):\d{1,5}$/;

function asNetwork(text: string): string {
  const bits = { 0: '', 4: '/32', 6: '/128' }[isIP(text)] ?? '';
  return `${text}${bits}`;
}

function fileProblem(path: string): string | null {
  try {
    readFileSync(path);
    return null;
  } catch (error) {
    return unreadable(error);
  }
}

function databaseProblem(url: string): string | null {
  try {
    tlsOptionsOf(parseDatabaseUrl(url));
    return null;
  } catch (error) {
    return error instanceof DatabaseUrlError ? error.message : unreadable(error);
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
  problems.push(...webhookProblems((name) => splitList(settingValue(env, name) ?? '')));
  problems.push(...webhookProxyProblems(settingValue(env, 'HELIOGRAPH_WEBHOOK_PROXY') ?? ''));
  problems.push(...keyProblems(env), ...tlsProblems(env), ...objectStoreProblems(env), ...mailProblems(env));
  return [...problems, ...openIdContradictions(env, production)];
}

function secretsIn(env: Environment) {
  return {
    appSecrets: splitList(settingValue(env, 'HELIOGRAPH_UPSTREAM_APP_SECRETS') ?? ''),
    verifyToken: settingValue(env, 'HELIOGRAPH_UPSTREAM_VERIFY_TOKEN') ?? '',
    encryptionKeys: settingValue(env, 'HELIOGRAPH_ENCRYPTION_KEYS') ?? '',
  };
}

function keyProblems(env: Environment): string[] {
  const keys = settingValue(env, 'HELIOGRAPH_ENCRYPTION_KEYS');
  if (keys === undefined) return [];
  try {
    parseEncryptionKeys(keys);
    return [];
  } catch (error) {
    return [`HELIOGRAPH_ENCRYPTION_KEYS is not usable: ${(error as Error).message}`];
  }
}

function tlsProblems(env: Environment): string[] {
  const value = (name: SettingName) => settingValue(env, name) ?? '';
  const problems: string[] = [];
  const pairs = [
    ['HELIOGRAPH_TLS_CERT_FILE', 'HELIOGRAPH_TLS_KEY_FILE'],
    ['HELIOGRAPH_TEMPORAL_TLS_CERT_FILE', 'HELIOGRAPH_TEMPORAL_TLS_KEY_FILE'],
  ] as const;
  for (const names of pairs) {
    const problem = pairProblem(value(names[0]), value(names[1]));
    if (problem !== null) problems.push(`${names.join(' and ')} ${problem}`);
  }
  if (Number(value('HELIOGRAPH_HTTPS_PORT')) >= 0 && value('HELIOGRAPH_TLS_CERT_FILE') === '') {
    problems.push('HELIOGRAPH_HTTPS_PORT needs HELIOGRAPH_TLS_CERT_FILE and HELIOGRAPH_TLS_KEY_FILE');
  }
  if (value('HELIOGRAPH_TEMPORAL_TLS') === 'true') return problems;
  for (const name of TEMPORAL_TLS_ONLY) {
    if (value(name) !== '') problems.push(`${name} needs HELIOGRAPH_TEMPORAL_TLS to be true`);
  }
  return problems;
}

const TEMPORAL_TLS_ONLY = [
  'HELIOGRAPH_TEMPORAL_TLS_CA_FILE',
  'HELIOGRAPH_TEMPORAL_TLS_CERT_FILE',
  'HELIOGRAPH_TEMPORAL_TLS_SERVER_NAME',
  'HELIOGRAPH_TEMPORAL_API_KEY',
] as const;

/** Files that cannot be read are named elsewhere. */
function pairProblem(certFile: string, keyFile: string): string | null {
  if ((certFile === '') !== (keyFile === '')) return 'must be set together';
  if (certFile === '' || fileProblem(certFile) !== null || fileProblem(keyFile) !== null) return null;
  try {
    createSecureContext({ cert: readFileSync(certFile), key: readFileSync(keyFile) });
    return null;
  } catch (error) {
    return `do not hold a certificate and its key (${(error as Error).message})`;
  }
}

function objectStoreProblems(env: Environment): string[] {
  const value = (name: SettingName) => settingValue(env, name) ?? '';
  const problems: string[] = [];
  const keys = ['HELIOGRAPH_OBJECT_STORE_ACCESS_KEY', 'HELIOGRAPH_OBJECT_STORE_SECRET_KEY'] as const;
  const usesKeys = value('HELIOGRAPH_OBJECT_STORE_CREDENTIALS') === 'keys';
  for (const name of keys) {
    if (usesKeys && value(name) === '')
      problems.push(`${name} is required, unless HELIOGRAPH_OBJECT_STORE_CREDENTIALS is role`);
    if (!usesKeys && value(name) !== '')
      problems.push(`${name} has no effect while HELIOGRAPH_OBJECT_STORE_CREDENTIALS is role`);
  }
  const kmsKey = value('HELIOGRAPH_OBJECT_STORE_KMS_KEY_ID');
  if (kmsKey !== '' && value('HELIOGRAPH_OBJECT_STORE_ENCRYPTION') !== 'aws:kms') {
    problems.push(
      'HELIOGRAPH_OBJECT_STORE_KMS_KEY_ID needs HELIOGRAPH_OBJECT_STORE_ENCRYPTION to be aws:kms',
    );
  }
  const prefix = value('HELIOGRAPH_OBJECT_STORE_PREFIX');
  if (prefix.startsWith('/') || prefix.includes('//')) {
    problems.push('HELIOGRAPH_OBJECT_STORE_PREFIX must not begin with a slash or hold two of them in a row');
  }
  return problems;
}

/** What is wrong is said without the URL, which holds a password. */
function mailProblems(env: Environment): string[] {
  const value = (name: SettingName) => settingValue(env, name) ?? '';
  const [text, from] = [value('HELIOGRAPH_SMTP_URL'), value('HELIOGRAPH_MAIL_FROM')];
  if (text === '' && from === '') return [];
  if (text === '' || from === '')
    return ['HELIOGRAPH_SMTP_URL and HELIOGRAPH_MAIL_FROM must be set together'];
  const problems: string[] = [];
  const url = URL.parse(text);
  if (url === null || !['smtp:', 'smtps:'].includes(url.protocol) || url.hostname === '') {
    problems.push('HELIOGRAPH_SMTP_URL must be smtp://host:port or smtps://host:port');
  }
  if (!MAIL_ADDRESS.test(from)) {
    problems.push('HELIOGRAPH_MAIL_FROM must be an address, or a name and <an address>');
  }
  return problems;
}

const MAIL_ADDRESS = /^(?:[^<>@\r\n]*<[^\s<>@]+@[^\s<>@]+>|[^\s<>@]+@[^\s<>@]+)$/;

function openIdContradictions(env: Environment, production: boolean): string[] {
  const names = [
    'HELIOGRAPH_OIDC_ISSUER',
    'HELIOGRAPH_OIDC_CLIENT_ID',
    'HELIOGRAPH_OIDC_CLIENT_SECRET',
  ] as const;
  const [issuer = '', ...others] = names.map((name) => settingValue(env, name) ?? '');
  if (issuer === '' && others.every((value) => value === '')) {
    return settingValue(env, 'HELIOGRAPH_PORTAL_PASSWORD_SIGN_IN') === 'false'
      ? ['HELIOGRAPH_PORTAL_PASSWORD_SIGN_IN can be false only with HELIOGRAPH_OIDC_ISSUER']
      : [];
  }
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

/** The sandbox upstream signs with this; the fixtures do too. Everybody can read it. */
export const DEVELOPMENT_APP_SECRET = 'test-app-secret';
export const DEVELOPMENT_VERIFY_TOKEN = 'heliograph-verify';

/** Those of the upstream platform have 32. */
const MIN_SECRET_CHARS = 16;

type Values = { appSecrets: readonly string[]; verifyToken: string; encryptionKeys: string };

/** What is wrong with secrets for production: anybody could know or guess them. Never holds one. */
function weakSecretProblems({ appSecrets, verifyToken, encryptionKeys }: Values): string[] {
  const problems: string[] = [];
  const secrets = appSecrets.map((text) => readAppSecret(text).secret);
  if (secrets.includes(DEVELOPMENT_APP_SECRET)) {
    problems.push(
      'HELIOGRAPH_UPSTREAM_APP_SECRETS holds the secret of the sandbox, which everybody can read; take that of your upstream app',
    );
  } else if (secrets.some((secret) => secret.length < MIN_SECRET_CHARS)) {
    problems.push(
      `HELIOGRAPH_UPSTREAM_APP_SECRETS holds a secret of less than ${MIN_SECRET_CHARS} characters, which can be guessed`,
    );
  }
  if (verifyToken === DEVELOPMENT_VERIFY_TOKEN) {
    problems.push(
      'HELIOGRAPH_UPSTREAM_VERIFY_TOKEN is that of the sandbox, which everybody can read; make one with: openssl rand -hex 16',
    );
  }
  if (encryptionKeys.split(',').some(isGuessableKey)) {
    problems.push(
      'HELIOGRAPH_ENCRYPTION_KEYS holds a key that is not random; make one with: openssl rand -base64 32',
    );
  }
  return problems;
}

/** 32 random bytes have 30 different ones; those of tests have one. Keys of another form are refused where they are read. */
function isGuessableKey(text: string): boolean {
  const bytes = Buffer.from(text.slice(text.indexOf(':') + 1).trim(), 'base64');
  return bytes.length > 0 && new Set(bytes).size < 8;
}

/** An app secret of the upstream platform, and whom it may speak for. */
export type AppSecret = {
  readonly secret: string;
  /** Null: every WABA. */
  readonly wabaIds: readonly string[] | null;
};

const WITH_WABAS = /^(.+)@(\d{1,64}(?:\+\d{1,64})*)$/;

/** Reads `secret` or `secret@wabaId+wabaId`. */
export function readAppSecret(text: string): AppSecret {
  const [, secret, wabaIds] = WITH_WABAS.exec(text) ?? [];
  if (secret === undefined || wabaIds === undefined) return { secret: text, wabaIds: null };
  return { secret, wabaIds: wabaIds.split('+') };
}
