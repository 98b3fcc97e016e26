import { parseArgs } from 'node:util';
import { comparedScenarios } from './peers/compare-peers.ts';
import { listScenarios, type Scenario } from './scenarios.ts';
import { AGED_DAYS } from './stack/aged-database.ts';
import type { Processes } from './stack/product.ts';

export type BenchOptions = {
  scenarios: Scenario[];
  quick: boolean;
  processes: Processes;
  /** How old the database is. */
  databaseDays: number;
  /** The directory of the product that is measured; null: this one. */
  checkout: string | null;
  jsonFile: string | null;
  profileDir: string | null;
};

/** What the user gave makes no sense; the message says what. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The options of the command line; null when help is wanted. Throws UsageError. */
export function readOptions(args: readonly string[]): BenchOptions | null {
  const { values } = parse(args);
  if (values.help === true) return null;
  const quick = values.quick === true;
  const wanted = (values.scenario ?? []).flatMap((names) => names.split(',')).map((name) => name.trim());
  const count = values.events === undefined ? null : wholeNumber('--events', values.events);
  const isComparison = values.peers === true;
  const all = listScenarios(quick);
  const scenarios = chosen(isComparison ? comparedScenarios(all) : all, wanted);
  return {
    scenarios: scenarios.map((scenario) => (count === null ? scenario : { ...scenario, count })),
    quick,
    processes: processesOf(values.processes ?? (isComparison ? 'one' : 'two')),
    databaseDays: wholeNumber('--days', values.days ?? String(AGED_DAYS)),
    checkout: values.checkout ?? null,
    jsonFile: values.json ?? null,
    profileDir: values.profile ?? null,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', short: 'h' },
        quick: { type: 'boolean' },
        peers: { type: 'boolean' },
        scenario: { type: 'string', multiple: true },
        events: { type: 'string' },
        processes: { type: 'string' },
        days: { type: 'string' },
        checkout: { type: 'string' },
        json: { type: 'string' },
        profile: { type: 'string' },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function chosen(all: readonly Scenario[], wanted: readonly string[]): Scenario[] {
  if (wanted.length === 0) return [...all];
  const unknown = wanted.filter((name) => !all.some((scenario) => scenario.name === name));
  if (unknown.length > 0) {
    const known = all.map(({ name }) => name).join(', ');
    throw new UsageError(`There is no scenario ${unknown.join(', ')}; known are ${known}.`);
  }
  return all.filter(({ name }) => wanted.includes(name));
}

function processesOf(text: string): Processes {
  if (text !== 'one' && text !== 'two') throw new UsageError('--processes must be one or two.');
  return text;
}

function wholeNumber(name: string, text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new UsageError(`${name} must be a whole number from 1 to 9999999.`);
  return Number(text);
}

/** What --help prints. */
export function usage(): string {
  const scenarios = listScenarios(false).map(({ name, about, to }) => {
    const where = to === 'hundred' ? ' (100 endpoints)' : '';
    return `  ${name.padEnd(18)} ${about}${where}`;
  });
  return [
    'npm run bench -- [options]',
    '',
    '  --scenario NAME   only this one; several times or separated by commas',
    '  --peers           beside what others would build, by turns: Fastify with graphile-worker, and with BullMQ',
    '  --quick           shorter runs: everything in less than four minutes',
    '  --processes HOW   two: API and worker apart; one: together, as `heliograph-server all` (two; with --peers one)',
    '  --events N        bodies per scenario, instead of its own number',
    `  --days N          the database has partitions and ordering keys of so many days (${AGED_DAYS})`,
    '  --checkout DIR    measure the product in another directory, such as that of an earlier commit',
    '  --json FILE       also write the figures to a file',
    '  --profile DIR     API and worker write a CPU profile there when they end',
    '',
    'Scenarios, in this order:',
    ...scenarios,
    '',
  ].join('\n');
}
