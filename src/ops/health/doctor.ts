import { readFileSync } from 'node:fs';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import pc from 'picocolors';
import { adminFailure, adminSettings, alignedFields, localStack } from '../../platform/cli/admin-action.ts';
import { printableJson } from '../../platform/cli/terminal-text.ts';
import { type Config, configWarnings } from '../../platform/config/config.ts';
import { makeSecretBox, parseEncryptionKeys } from '../../platform/crypto/secret-box.ts';
import { openDatabase } from '../../platform/postgres/database.ts';
import { type CheckResult, fail, ok, overall, resultOf, runChecks, warn } from './checks.ts';
import { databaseChecks, type FromOthers } from './database-checks.ts';
import { safetyCheck } from './safety-check.ts';
import { serverChecks } from './server-checks.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the exit code: 1 when something failed. */
export async function runDoctor(
  env: Environment,
  { json, dataDir }: { json: boolean; dataDir: string },
  others: FromOthers,
): Promise<number> {
  const results = await examine(env, dataDir, others);
  const status = overall(results);
  process.stdout.write(
    json ? `${printableJson(JSON.stringify({ status, checks: results }))}\n` : `${textOf(results)}\n`,
  );
  return status === 'fail' ? 1 : 0;
}

async function examine(env: Environment, dataDir: string, others: FromOthers): Promise<CheckResult[]> {
  const settings = readSettings(env, dataDir);
  if ('problem' in settings) return [settings.problem];
  const { config, caPath } = settings;
  if (caPath !== null)
    setDefaultCACertificates([...getCACertificates('default'), readFileSync(caPath, 'utf8')]);
  const warnings = configWarnings(config).map((text) => warn(text, 'change the setting'));
  const findings = warnings.length > 0 ? warnings : [ok('every setting is valid')];
  const own = findings.map((finding) => resultOf('settings', finding));
  const secretBox = makeSecretBox(parseEncryptionKeys(config.encryptionKeys));
  const database = openDatabase({ ...config.database, poolMax: 4, applicationName: 'heliograph-doctor' });
  const reasonOf = (error: unknown) => adminFailure(error, config.database.url)?.message ?? messageOf(error);
  try {
    const tools = { database, secretBox };
    return [
      ...own,
      ...(await runChecks(
        [
          ...databaseChecks(tools, { isEmbedded: caPath !== null, others }),
          safetyCheck(config, database),
          ...serverChecks(config, tools),
        ],
        reasonOf,
      )),
    ];
  } finally {
    await database.destroy();
  }
}

/** `caPath`: the authority of the stack of `npm start`; null: the settings are those of another installation. */
type Settings = { config: Config; caPath: string | null };

function readSettings(env: Environment, dataDir: string): Settings | { problem: CheckResult } {
  try {
    const config = adminSettings(env, dataDir);
    return { config, caPath: localStack(env, dataDir)?.caPath ?? null };
  } catch (error) {
    const message = adminFailure(error, null)?.message ?? messageOf(error);
    return {
      problem: resultOf('settings', fail(message, 'correct them: docs/operators/configuration.md')),
    };
  }
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
  return `${error.message}${cause}`.slice(0, 500);
}

const COLOURS = { ok: pc.green, warn: pc.yellow, fail: pc.red };

function textOf(results: readonly CheckResult[]): string {
  const lines = alignedFields(
    results.flatMap(({ name, status, detail, todo }) => [
      [`${status.padEnd(4)}  ${name}`, detail] as const,
      ...(todo === undefined ? [] : [['', `→ ${todo}`] as const]),
    ]),
  );
  const coloured = lines.replace(/^(ok|warn|fail)\b/gm, (word) =>
    COLOURS[word as keyof typeof COLOURS](word),
  );
  const counts = (['fail', 'warn'] as const).map(
    (wanted) => `${results.filter(({ status }) => status === wanted).length} ${wanted}`,
  );
  return `${coloured}\n\n${counts.join(', ')} of ${results.length}`;
}
