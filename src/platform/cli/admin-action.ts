import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { type Audited, OPERATOR_COMMAND } from '../audit/audit.ts';
import { type Config, loadConfig } from '../config/config.ts';
import { InvalidSettingsError } from '../config/read-settings.ts';
import { makeSecretBox, parseEncryptionKeys, type SecretBox, SecretBoxError } from '../crypto/secret-box.ts';
import { GraphError } from '../graph/graph-error.ts';
import { InvalidCidrError } from '../http/networks.ts';
import { readIsoTime } from '../iso-time.ts';
import {
  descriptionFile,
  type EmbeddedDescription,
  readJsonFile,
} from '../local-stack/embedded-description.ts';
import { redactError } from '../logger.ts';
import { ObjectStoreUnavailable } from '../object-store/store-errors.ts';
import { type Database, type DatabasePool, openDatabase } from '../postgres/database.ts';
import { isCanceled, isLockTimeout, isTransientError } from '../postgres/error-class.ts';
import { isPoolerAnswer, poolerError } from '../postgres/server-checks.ts';
import { RequestError } from '../request-input.ts';
import { printable, printableJson } from './terminal-text.ts';

/** What a command works with; the database is closed when it ends. */
export type AdminTools = { config: Config; database: Database; secretBox: SecretBox } & Audited;

export type AdminInput<Options> = { tools: AdminTools; args: string[]; options: Options };

export type AdminOutcome = {
  json: object;
  text: string;
  /** Remarks, on stderr so that they never mix with the result. */
  notes?: string[];
  /** False: what was asked for is not there, and the exit code says so. */
  found?: boolean;
  /** The command has written its result to standard output itself. */
  isPrinted?: boolean;
};

type CommonOptions = { json?: boolean; dataDir: string };

/** Gives a command its common options, an example in its help (behind `program`), and what it does. */
export function adminAction<Options>(
  command: Command,
  example: string,
  run: (input: AdminInput<Options>) => Promise<AdminOutcome>,
  program = 'npm run -s admin --',
): Command {
  return command
    .option('--json', 'print JSON for programs')
    .option(
      '--data-dir <path>',
      'state of the npm start to use, unless the environment names a database',
      '.data',
    )
    .addHelpText('after', `\nExample:\n  ${program} ${example}`)
    .action(async () => {
      const options = command.opts<CommonOptions & Options>();
      await perform(options, (tools) => run({ tools, args: command.args, options }));
    });
}

async function perform(
  options: CommonOptions,
  run: (tools: AdminTools) => Promise<AdminOutcome>,
): Promise<void> {
  let config: Config | null = null;
  let database: DatabasePool | null = null;
  try {
    config = adminSettings(process.env, options.dataDir);
    const secretBox = makeSecretBox(parseEncryptionKeys(config.encryptionKeys));
    database = openDatabase({ ...config.database, poolMax: 2, applicationName: 'heliograph-admin' });
    report(await run({ config, database, secretBox, actor: OPERATOR_COMMAND }), options);
  } catch (error) {
    reportFailure(error, config?.database.url ?? null, options);
  } finally {
    await database?.destroy();
  }
}

function report(
  { json, text, notes = [], found = true, isPrinted = false }: AdminOutcome,
  options: CommonOptions,
): void {
  // Names, texts and errors of customers, tenants and servers are in it.
  for (const note of notes) process.stderr.write(`note: ${printable(note)}\n`);
  if (!isPrinted) {
    process.stdout.write(`${options.json ? printableJson(JSON.stringify(json)) : printable(text)}\n`);
  }
  if (!found) process.exitCode = 1;
}

function reportFailure(error: unknown, databaseUrl: string | null, options: CommonOptions): void {
  const failure = adminFailure(error, databaseUrl);
  if (failure === null) {
    redactError(error);
    throw error;
  }
  const { code, message, exitCode } = failure;
  process.exitCode = exitCode;
  process.stderr.write(`error: ${printable(message)}\n`);
  if (options.json) process.stdout.write(`${printableJson(JSON.stringify({ error: { code, message } }))}\n`);
}

/** What a failed command says; exit code 2 is wrong usage or settings, 1 everything else. */
type AdminFailure = { code: string; message: string; exitCode: 1 | 2 };

/** Reads an error as something that the operator can act on; null when it is a fault of the program. */
export function adminFailure(error: unknown, databaseUrl: string | null): AdminFailure | null {
  if (error instanceof RequestError) {
    return { code: error.code, message: error.message, exitCode: error.code === 'invalid_value' ? 2 : 1 };
  }
  if (error instanceof InvalidSettingsError || error instanceof InvalidCidrError) {
    return { code: 'invalid_settings', message: error.message, exitCode: 2 };
  }
  if (error instanceof SecretBoxError) {
    const message = `${error.message} Check HELIOGRAPH_ENCRYPTION_KEYS.`;
    return { code: 'encryption_keys', message, exitCode: 1 };
  }
  if (error instanceof GraphError) {
    const message = `Could not read the phone numbers from the upstream platform: ${error.message}`;
    return { code: 'upstream', message, exitCode: 1 };
  }
  if (error instanceof ObjectStoreUnavailable) {
    const message = `${error.message}. Start the object store, or correct HELIOGRAPH_OBJECT_STORE_*.`;
    return { code: 'object_store_away', message, exitCode: 1 };
  }
  return databaseFailure(error, databaseUrl);
}

function databaseFailure(error: unknown, databaseUrl: string | null): AdminFailure | null {
  const host = (databaseUrl === null ? null : URL.parse(databaseUrl)?.host) ?? 'its address';
  if (isPoolerAnswer(error)) {
    const { message } = poolerError({});
    return { code: 'database_pooler', message, exitCode: 2 };
  }
  const sqlState = error instanceof Error && 'code' in error ? error.code : null;
  if (sqlState === '42P01') {
    const message = `The database at ${host} has no tables yet: run "heliograph-server migrate" first.`;
    return { code: 'not_migrated', message, exitCode: 1 };
  }
  if (sqlState === '28P01' || sqlState === '28000' || sqlState === '3D000') {
    const message = `The database at ${host} refuses the login: check HELIOGRAPH_DATABASE_URL (user, password, database name).`;
    return { code: 'database_login', message, exitCode: 1 };
  }
  if (isCanceled(error) || isLockTimeout(error)) {
    const message = `The database at ${host} is too busy for this now: nothing was changed, try again later.`;
    return { code: 'database_busy', message, exitCode: 1 };
  }
  if (!isTransientError(error)) return null;
  const message =
    `The database at ${host} does not answer: start it (npm start runs everything) ` +
    'or check HELIOGRAPH_DATABASE_URL.';
  return { code: 'database_away', message, exitCode: 1 };
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The settings of the installation that a command is for: the environment's when it names a database, otherwise those
 * of the stack that `npm start` keeps in `dataDir`. Throws InvalidSettingsError, and RequestError `no_installation`.
 */
export function adminSettings(env: Environment, dataDir: string): Config {
  const description = localStack(env, dataDir);
  if (description === null) return loadConfig(env);
  return loadConfig({ ...env, ...embeddedSettings(description, dataDir) });
}

/**
 * The stack of `npm start` in `dataDir`; null when the environment names a database, which then is meant. Throws
 * RequestError `no_installation`.
 */
export function localStack(env: Environment, dataDir: string): EmbeddedDescription | null {
  if (env.HELIOGRAPH_DATABASE_URL?.trim() || env.HELIOGRAPH_DATABASE_URL_FILE?.trim()) return null;
  const description = readJsonFile(descriptionFile(dataDir));
  if (!isDescription(description)) {
    throw new RequestError(
      'no_installation',
      `There is no running stack in ${dataDir} and HELIOGRAPH_DATABASE_URL is not set: ` +
        'run npm start in another terminal, or set the HELIOGRAPH_* variables of your installation.',
    );
  }
  return description;
}

/** The part of the embedded stack's settings that commands use; the others are there because they are required. */
function embeddedSettings(description: EmbeddedDescription, dataDir: string): Record<string, string> {
  const key = Buffer.from(readFileSync(join(dataDir, 'encryption-key'), 'utf8').trim(), 'base64url');
  return {
    HELIOGRAPH_MODE: 'development',
    HELIOGRAPH_DATABASE_URL: description.postgresUrl,
    HELIOGRAPH_TEMPORAL_ADDRESS: description.temporalAddress,
    HELIOGRAPH_TEMPORAL_NAMESPACE: 'default',
    HELIOGRAPH_TEMPORAL_UI_URL: description.temporalUiUrl,
    HELIOGRAPH_PUBLIC_URL: description.publicUrl,
    HELIOGRAPH_UPSTREAM_GRAPH_URL: description.sandboxUrl,
    HELIOGRAPH_UPSTREAM_APP_SECRETS: description.upstream.appSecret,
    HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: description.upstream.verifyToken,
    HELIOGRAPH_WEBHOOK_ALLOW_HTTP: 'true',
    HELIOGRAPH_WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8,::1/128',
    HELIOGRAPH_ENCRYPTION_KEYS: `local:${key.toString('base64')}`,
    HELIOGRAPH_OBJECT_STORE_URL: description.minioUrl,
    HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: description.minioAccessKey,
    HELIOGRAPH_OBJECT_STORE_SECRET_KEY: description.minioSecretKey,
  };
}

function isDescription(value: unknown): value is EmbeddedDescription {
  if (typeof value !== 'object' || value === null || !('upstream' in value)) return false;
  const { upstream } = value;
  const texts = [
    ...['postgresUrl', 'temporalAddress', 'temporalUiUrl', 'publicUrl', 'caPath', 'sandboxUrl'],
    ...['minioUrl', 'minioAccessKey', 'minioSecretKey'],
  ];
  return (
    texts.every((name) => typeof (value as Record<string, unknown>)[name] === 'string') &&
    typeof upstream === 'object' &&
    upstream !== null
  );
}

/** Lines of `label  value`, the values below each other. A null value is shown as a dash. */
export function alignedFields(fields: readonly (readonly [string, unknown])[]): string {
  const width = Math.max(0, ...fields.map(([label]) => label.length));
  return fields.map(([label, value]) => `${label.padEnd(width)}  ${shownValue(value)}`).join('\n');
}

/** A table with a heading; `empty` takes its place when there are no rows. */
export function alignedTable(
  headings: readonly string[],
  rows: readonly (readonly unknown[])[],
  empty: string,
): string {
  if (rows.length === 0) return empty;
  const lines = [[...headings], ...rows.map((row) => row.map(shownValue))];
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** On one line and without control or direction characters: what others wrote must not steer a terminal. */
function shownValue(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  if (value instanceof Date) return value.toISOString();
  const text = Array.isArray(value) ? value.join(', ') : String(value);
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim() || '-';
}

/** Reads an ISO 8601 time with its zone; without one, it would mean another moment on another machine. */
export function parseIsoTime(text: string): Date {
  const time = readIsoTime(text);
  if (time === null) {
    throw new InvalidArgumentError('Write it as an ISO 8601 time with zone, such as 2027-01-31T12:00:00Z.');
  }
  return time;
}
