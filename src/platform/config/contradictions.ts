import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { parseEncryptionKeys } from '../crypto/secret-box.ts';
import { DatabaseUrlError, parseDatabaseUrl, tlsOptionsOf } from '../postgres/database-url.ts';
import { readAppSecret } from './app-secret.ts';
import { type Environment, settingValue, splitList, unreadable } from './environment.ts';
import type { SettingName } from './settings.ts';
import { weakSecretProblems } from './weak-secrets.ts';
import { webhookProblems, webhookProxyProblems } from './webhook-problems.ts';

export function fileProblem(path: string): string | null {
  try {
    readFileSync(path);
    return null;
  } catch (error) {
    return unreadable(error);
  }
}

export function databaseProblem(url: string): string | null {
  try {
    tlsOptionsOf(parseDatabaseUrl(url));
    return null;
  } catch (error) {
    return error instanceof DatabaseUrlError ? error.message : unreadable(error);
  }
}

/** Reads a setting; empty when it is not given and has no default. */
type Values = (name: SettingName) => string;

export function contradictions(env: Environment): string[] {
  const value: Values = (name) => settingValue(env, name) ?? '';
  const problems: string[] = [];
  const production = value('HELIOGRAPH_MODE') === 'production';
  if (production && value('HELIOGRAPH_WEBHOOK_ALLOW_HTTP') === 'true') {
    problems.push('HELIOGRAPH_WEBHOOK_ALLOW_HTTP must be false in production mode');
  }
  problems.push(...sandboxProblems(value, production));
  if (production) problems.push(...weakSecretProblems(secretsIn(value)));
  const publicUrl = value('HELIOGRAPH_PUBLIC_URL');
  if (publicUrl !== '' && !publicUrl.startsWith('https://') && !isThisMachine(publicUrl, production)) {
    problems.push('HELIOGRAPH_PUBLIC_URL must start with https:// because media URLs are https');
  }
  problems.push(...originProblems(splitList(value('HELIOGRAPH_PORTAL_PRODUCT_ORIGINS')), production));
  problems.push(...webhookProblems((name) => splitList(value(name))));
  problems.push(...webhookProxyProblems(value('HELIOGRAPH_WEBHOOK_PROXY')));
  problems.push(
    ...[keyProblems, tlsProblems, objectStoreProblems, mailProblems, contactProblems, signupProblems].flatMap(
      (find) => find(value),
    ),
  );
  return [...problems, ...openIdContradictions(value, production)];
}

const MAX_ORIGINS = 20;

/** Compared with the origins of addresses, so each is written as browsers write it. */
function originProblems(origins: readonly string[], production: boolean): string[] {
  const isOrigin = (text: string) =>
    URL.parse(text)?.origin === text && (text.startsWith('https://') || isThisMachine(text, production));
  if (origins.length <= MAX_ORIGINS && origins.every(isOrigin)) return [];
  return [
    `HELIOGRAPH_PORTAL_PRODUCT_ORIGINS must be at most ${MAX_ORIGINS} origins such as https://crm.example, without a path`,
  ];
}

/** While one develops, links over http to the machine itself open without a certificate to trust. */
function isThisMachine(url: string, production: boolean): boolean {
  const { protocol, hostname } = URL.parse(url) ?? {};
  return !production && protocol === 'http:' && ['127.0.0.1', 'localhost', '[::1]'].includes(hostname ?? '');
}

function secretsIn(value: Values) {
  return {
    appSecrets: splitList(value('HELIOGRAPH_UPSTREAM_APP_SECRETS')),
    verifyToken: value('HELIOGRAPH_UPSTREAM_VERIFY_TOKEN'),
    encryptionKeys: value('HELIOGRAPH_ENCRYPTION_KEYS'),
  };
}

function keyProblems(value: Values): string[] {
  const keys = value('HELIOGRAPH_ENCRYPTION_KEYS');
  if (keys === '') return [];
  try {
    parseEncryptionKeys(keys);
    return [];
  } catch (error) {
    return [`HELIOGRAPH_ENCRYPTION_KEYS is not usable: ${(error as Error).message}`];
  }
}

function tlsProblems(value: Values): string[] {
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

function objectStoreProblems(value: Values): string[] {
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

function signupProblems(value: Values): string[] {
  const names = ['HELIOGRAPH_UPSTREAM_APP_ID', 'HELIOGRAPH_UPSTREAM_SIGNUP_CONFIG_ID'] as const;
  const [appId, configId] = names.map(value);
  if ((appId === '') !== (configId === '')) return [`${names.join(' and ')} must be set together`];
  const problems = names
    .filter((name) => !/^\d{0,64}$/.test(value(name)))
    .map((name) => `${name} must be an id of digits`);
  const [first = ''] = splitList(value('HELIOGRAPH_UPSTREAM_APP_SECRETS'));
  if (appId === '' || readAppSecret(first).wabaIds === null) return problems;
  const secret = 'the first of HELIOGRAPH_UPSTREAM_APP_SECRETS must be its secret';
  return [...problems, `HELIOGRAPH_UPSTREAM_APP_ID is set, so ${secret}, without WABAs behind it`];
}

/** What is wrong is said without the URL, which holds a password. */
function mailProblems(value: Values): string[] {
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

/** Scanners and people follow them: RFC 9116 §2.5.3 wants URIs, https for web pages. */
function contactProblems(value: Values): string[] {
  const isContact = (text: string) =>
    /^(?:mailto:[^\s<>@]+@[^\s<>@]+|tel:\+[\d-]+|https:\/\/[^\s<>]+)$/.test(text);
  if (splitList(value('HELIOGRAPH_SECURITY_CONTACTS')).every(isContact)) return [];
  return ['HELIOGRAPH_SECURITY_CONTACTS must be mailto:, tel: or https:// addresses, separated by commas'];
}

const MAIL_ADDRESS = /^(?:[^<>@\r\n]*<[^\s<>@]+@[^\s<>@]+>|[^\s<>@]+@[^\s<>@]+)$/;

function openIdContradictions(value: Values, production: boolean): string[] {
  const names = [
    'HELIOGRAPH_OIDC_ISSUER',
    'HELIOGRAPH_OIDC_CLIENT_ID',
    'HELIOGRAPH_OIDC_CLIENT_SECRET',
  ] as const;
  const [issuer = '', ...others] = names.map(value);
  if (issuer === '' && others.every((value) => value === '')) {
    return value('HELIOGRAPH_PORTAL_PASSWORD_SIGN_IN') === 'false'
      ? ['HELIOGRAPH_PORTAL_PASSWORD_SIGN_IN can be false only with HELIOGRAPH_OIDC_ISSUER']
      : [];
  }
  if (others.includes('') || issuer === '') return [`${names.join(', ')} must be set together`];
  const protocol = URL.parse(issuer)?.protocol;
  if (protocol === 'https:' || (protocol === 'http:' && !production)) return [];
  return ['HELIOGRAPH_OIDC_ISSUER must be an https:// URL'];
}

/** The sandbox asks for no password: it is reached on this machine, and not by an installation. */
function sandboxProblems(value: Values, production: boolean): string[] {
  const names = ['HELIOGRAPH_SANDBOX_CONTROL_URL', 'HELIOGRAPH_SANDBOX_RECEIVER_URL'] as const;
  return names.flatMap((name) => {
    if (value(name) === '') return [];
    if (production) return [`${name} must not be set in production mode`];
    const url = URL.parse(value(name));
    const isLoopback = ['127.0.0.1', '[::1]', 'localhost'].includes(url?.hostname ?? '');
    return url?.protocol === 'http:' && isLoopback ? [] : [`${name} must be an http:// URL of this machine`];
  });
}
