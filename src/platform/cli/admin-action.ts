import type { Command } from 'commander';
import { type Audited, OPERATOR_COMMAND } from '../audit/audit.ts';
import type { Config } from '../config/config.ts';
import { makeSecretBox, parseEncryptionKeys, type SecretBox } from '../crypto/secret-box.ts';
import { redactError } from '../error-redaction.ts';
import { type Database, type DatabasePool, openDatabase } from '../postgres/database.ts';
import { adminFailure } from './admin-failure.ts';
import { adminSettings } from './admin-settings.ts';

/** What a command works with; the database is closed when it ends. */
export type AdminTools = { config: Config; database: Database; secretBox: SecretBox } & Audited;

export type AdminInput<Options> = { tools: AdminTools; args: string[]; options: Options };

/** What a command did: for programs and for people. */
export type AdminOutcome = {
  json: object;
  text: string;
  /** Remarks, on stderr so that they never mix with the result. */
  notes?: string[];
  /** False: what was asked for is not there, and the exit code says so. */
  found?: boolean;
};

type CommonOptions = { json?: boolean; dataDir: string };

/** Gives a command its common options, an example in its help, and what it does. */
export function adminAction<Options>(
  command: Command,
  example: string,
  run: (input: AdminInput<Options>) => Promise<AdminOutcome>,
): Command {
  return command
    .option('--json', 'print JSON for programs')
    .option(
      '--data-dir <path>',
      'state of the npm start to work on, unless the environment names a database',
      '.data',
    )
    .addHelpText('after', `\nExample:\n  npm run -s admin -- ${example}`)
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
    database = openDatabase({ url: config.database.url, poolMax: 2, applicationName: 'heliograph-admin' });
    report(await run({ config, database, secretBox, actor: OPERATOR_COMMAND }), options);
  } catch (error) {
    reportFailure(error, config?.database.url ?? null, options);
  } finally {
    await database?.destroy();
  }
}

function report({ json, text, notes = [], found = true }: AdminOutcome, options: CommonOptions): void {
  for (const note of notes) process.stderr.write(`note: ${note}\n`);
  process.stdout.write(options.json ? `${JSON.stringify(json)}\n` : `${text}\n`);
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
  process.stderr.write(`error: ${message}\n`);
  if (options.json) process.stdout.write(`${JSON.stringify({ error: { code, message } })}\n`);
}
