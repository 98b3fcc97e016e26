import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import pc from 'picocolors';
import { adminFailure, adminSettings, alignedFields, localStack } from '../../platform/cli/admin-action.ts';
import { printableJson } from '../../platform/cli/terminal-text.ts';
import { type Config, configWarnings } from '../../platform/config/config.ts';
import { makeSecretBox, parseEncryptionKeys } from '../../platform/crypto/secret-box.ts';
import { losesNames } from '../../platform/postgres/connection.ts';
import { openDatabase } from '../../platform/postgres/database.ts';
import type { OfOthers } from './database-questions.ts';
import { ageText, type Finding, fail, ok, unlessFine, warn } from './findings.ts';
import {
  ALL,
  type Answers,
  askAll,
  liveWorkers,
  QUESTIONS,
  type QuestionId,
  type ToolsFor,
  unlessUp,
} from './questions.ts';
import type { WABA_QUESTIONS } from './waba-check.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** As `heliograph-server doctor --json` prints it; programs read these words. */
export type CheckResult = Omit<Finding, 'status'> & { name: string; status: 'ok' | 'warn' | 'fail' };

const WORDS = { up: 'ok', degraded: 'warn', unknown: 'warn', down: 'fail' } as const;

/** Returns the exit code: 1 when something failed. */
export async function runDoctor(
  env: Environment,
  { json, dataDir }: { json: boolean; dataDir: string },
  others: OfOthers,
): Promise<number> {
  const results = await examine(env, dataDir, others);
  const status = overall(results);
  process.stdout.write(
    json ? `${printableJson(JSON.stringify({ status, checks: results }))}\n` : `${textOf(results)}\n`,
  );
  return status === 'fail' ? 1 : 0;
}

const NAMELESS =
  'PostgreSQL parses each statement each time behind the pooler: HELIOGRAPH_DATABASE_POOLER_PREPARES=true saves that, if the pooler keeps them';

async function examine(env: Environment, dataDir: string, others: OfOthers): Promise<CheckResult[]> {
  const settings = readSettings(env, dataDir);
  if ('problem' in settings) return [settings.problem];
  const { config, caPath } = settings;
  if (caPath !== null)
    setDefaultCACertificates([...getCACertificates('default'), readFileSync(caPath, 'utf8')]);
  const warnings = configWarnings(config).map((text) => warn(text, 'change the setting'));
  const findings = warnings.length > 0 ? warnings : [ok('every setting is valid')];
  if (losesNames(config.database)) findings.push(ok(NAMELESS));
  const own = findings.map((finding) => resultOf('settings', finding));
  const secretBox = makeSecretBox(parseEncryptionKeys(config.encryptionKeys));
  const database = openDatabase({ ...config.database, poolMax: 4, applicationName: 'heliograph-doctor' });
  const reasonOf = (error: unknown) => adminFailure(error, config.database.url)?.message ?? messageOf(error);
  const { publicUrl } = config.api;
  const tools = { database, secretBox, config, publicUrl, ...others, isEmbedded: caPath !== null };
  try {
    return [...own, ...(await runChecks(doctorChecks(tools), reasonOf))];
  } finally {
    await database.destroy();
  }
}

/** What does not answer by then counts as failed: every check tells something within a minute in all. */
const CHECK_WITHIN_MS = 15_000;

/** Side by side; the results are in the order of the checks. A check that throws has failed. */
export async function runChecks(
  checks: readonly Check[],
  reasonOf: (error: unknown) => string,
  withinMs = CHECK_WITHIN_MS,
): Promise<CheckResult[]> {
  const results = await Promise.all(
    checks.map(async ({ name, todo, run }) => {
      const late = fail(`no answer within ${withinMs / 1_000} s`, todo);
      const found = run().catch((error: unknown) => fail(reasonOf(error), todo));
      const findings = await Promise.race([found, sleep(withinMs, late, { ref: false })]);
      return [findings].flat().map((finding) => resultOf(name, finding));
    }),
  );
  return results.flat();
}

export function resultOf(name: string, { status, ...finding }: Finding): CheckResult {
  return { name, status: WORDS[status], ...finding };
}

export function overall(results: readonly CheckResult[]): CheckResult['status'] {
  const found = new Set(results.map(({ status }) => status));
  return found.has('fail') ? 'fail' : found.has('warn') ? 'warn' : 'ok';
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

type Shown = Exclude<QuestionId, keyof typeof WABA_QUESTIONS | 'temporal' | 'objectStore'>;

/** A line of the doctor, or several; none: it has nothing to look at. */
export type Check = {
  name: string;
  /** What to do when there is no answer. */
  todo: string;
  run: () => Promise<Finding | readonly Finding[]>;
};

const READ = 'see the check "database" first; if it is ok, run "heliograph-server migrate"';

const MANY_ROWS = 10_000;

/** The answers of a line in the words of the doctor; of the other lines they are in words. */
const LINES = {
  schema: ({ schemaState: { pending, later, functions, invalidIndexes, isRunning } }) => {
    const migrate = 'run "heliograph-server migrate"';
    return unlessFine(
      ok('it is that of this version'),
      unlessUp('schema', pending, `migrations are missing: ${pending.join(', ')}`),
      functions !== 'current' && warn('its functions are of another version', migrate),
      invalidIndexes.length > 0 && warn(`no query uses these indexes: ${invalidIndexes.join(', ')}`, migrate),
      isRunning && warn('a migration is in progress', 'wait until it ends'),
      later.length > 0 &&
        warn(`a later version migrated it: ${later.join(', ')}`, 'bring all processes to one version'),
    );
  },
  partitions: ({ partitions }) => {
    const { days, defaultRows } = partitions;
    const read = 'see docs/operators/monitoring.md, partitions';
    return unlessFine(
      ok(`for ${days} days, ${defaultRows} rows outside of them`),
      unlessUp('partitions', partitions, `there are partitions for ${days} days only`),
      defaultRows > MANY_ROWS && warn(`over ${MANY_ROWS} rows are in default partitions`, read),
    );
  },
  clock: ({ clock }) => {
    const apartMs = Math.abs(clock);
    return unlessFine(
      ok(`it agrees with PostgreSQL's to ${Math.ceil(apartMs)} ms`),
      unlessUp('clock', clock, `this machine and PostgreSQL differ by ${Math.round(apartMs / 1_000)} s`),
    );
  },
  workers: ({ workers, workerProxy }) => {
    const live = liveWorkers(workers);
    return unlessFine(
      ok(`${live.length}: ${live.join(', ')}`),
      unlessUp('workers', workers, 'no worker runs: nothing is ingested or delivered'),
      unlessUp('workerProxy', workerProxy, workerProxy.join(' ')),
    );
  },
  intake: ({ oldestBody, inbox, awaitingNumber }) => {
    const waiting = `${inbox.new} bodies wait`;
    return unlessFine(
      ok(waiting),
      unlessUp('oldestBody', oldestBody, `${waiting}, the oldest for ${ageText(oldestBody)}`),
      unlessUp('inbox', inbox, `the intake of ${inbox.failed} bodies failed`),
      unlessUp('awaitingNumber', awaitingNumber, `${awaitingNumber.count} bodies wait for a phone number`),
    );
  },
  deliveries: ({ pending: { count, more }, oldestDue, traffic }) => {
    const pending = `${count}${more ? '+' : ''} are pending`;
    const { delivered, failed } = traffic;
    const share = `${failed.toFixed(1)} of ${(failed + delivered).toFixed(1)} per second`;
    return unlessFine(
      ok(pending),
      unlessUp('oldestDue', oldestDue, `${pending}, one has been due for ${ageText(oldestDue)}`),
      unlessUp('traffic', traffic, `most attempts fail: ${share}`),
    );
  },
  housekeeping: ({ housekeeping }) =>
    unlessFine(
      ok('every step went well'),
      ...housekeeping.map((one) => {
        const text = `${one.step} has failed for ${ageText(one.failingSince)}: ${one.error}`;
        return unlessUp('housekeeping', [one], text);
      }),
    ),
  quotas: ({ quotas }) => {
    const text = `the fullest is used to ${Math.round(100 * quotas)} %`;
    const fine = quotas === 0 ? 'none is set, or none is used' : text;
    return unlessFine(ok(fine), unlessUp('quotas', quotas, text));
  },
  'public address': ({ addressCertificate, publicAddress }) => {
    const { publicUrl, status } = publicAddress;
    const text = `${publicUrl}/readyz returns ${status}`;
    const ready = unlessFine(ok(`${publicUrl} is ready`), unlessUp('publicAddress', publicAddress, text));
    return [...addressCertificate, ...ready];
  },
  'egress proxy': ({ proxy }) => {
    const unset = 'HELIOGRAPH_WEBHOOK_PROXY is not set: webhooks are sent directly';
    const fine = 'the egress proxy accepts our credentials and refuses its own loopback address';
    const refuse = 'have it refuse internal addresses: docs/operators/connections.md, egress proxy';
    return unlessFine(
      ok(proxy === null ? unset : fine),
      unlessUp('proxy', proxy, `${proxy?.trouble}`),
      proxy?.isOpenInside === true &&
        warn('the egress proxy makes connections to its own loopback address', refuse),
    );
  },
} satisfies Record<string, (answers: Answers<Shown>) => Finding[]>;

/** The questions that have a line in the doctor, line by line. */
export function doctorChecks(tools: ToolsFor<Shown>): Check[] {
  const shown = (Object.keys(QUESTIONS) as QuestionId[]).filter(
    (id): id is Shown => ALL[id].line !== undefined,
  );
  return [...Map.groupBy(shown, (id) => ALL[id].line ?? id)].map(([name, ids]) => {
    const words: ((answers: Answers<Shown>) => Finding[]) | undefined = LINES[name as keyof typeof LINES];
    return {
      name,
      todo: ids.map((id) => ALL[id].away).find((away) => away !== undefined) ?? READ,
      run: async () => {
        const answers = await askAll(ids, tools);
        return words?.(answers) ?? (Object.values(answers).flat() as Finding[]);
      },
    };
  });
}
