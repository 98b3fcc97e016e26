import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { onStopSignals } from '../../dev/embedded/start.ts';
import { faults } from './faults.ts';
import { startInstallation } from './installation.ts';
import { limits } from './limits.ts';
import { startLoad } from './load.ts';
import { CannotRunError } from './machines.ts';
import { type Row, reportText } from './report.ts';
import { cpu, database, slots } from './throughput.ts';

const SCENARIOS = { slots, cpu, database, limits, faults };
type Name = keyof typeof SCENARIOS;

const HELP = `npm run cluster: Heliograph on several machines (network namespaces and control groups of this one), measured
and hurt. A proxy, 3 APIs, 1 to 8 workers, 2 Temporal nodes, PostgreSQL with a synchronous standby. Needs root on Linux.

  npm run cluster -- [options]

  --only NAMES    only these, separated by commas
  --faults NAMES  of the scenario faults only these, separated by commas
  --quick         shorter runs
  --keep          keeps data and logs
  --json FILE     also writes the figures to a file
  --help

  slots           receivers that take 1 to 2 s, with 1, 2, 4 and 8 workers
  cpu             one and two workers that have a fifth of a core each
  database        what an event costs PostgreSQL with 1 and with 8 workers
  limits          starts of workflows, retries, rates and attempts at a time, with 8 workers
  faults          machines killed, frozen, parted, with a wrong clock; fail-over; rolling restarts
`;

const log = (line: string) =>
  void process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);

process.exitCode = await main();

async function main(): Promise<number> {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: 'string', default: Object.keys(SCENARIOS).join(',') },
        faults: { type: 'string' },
        quick: { type: 'boolean', default: false },
        keep: { type: 'boolean', default: false },
        json: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) {
      process.stdout.write(HELP);
      return 0;
    }
    const rows = await run(chosen(values.only), {
      quick: values.quick,
      keep: values.keep,
      faults: values.faults?.split(',') ?? null,
    });
    if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(rows, null, 2)}\n`);
    return rows.every(({ isMet }) => isMet !== false) ? 0 : 1;
  } catch (error) {
    const isUsage =
      error instanceof CannotRunError || (error as { code?: string }).code?.startsWith('ERR_PARSE');
    process.stderr.write(`${isUsage === true ? (error as Error).message : (error as Error).stack}\n`);
    return 2;
  }
}

function chosen(text: string): Name[] {
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !(name in SCENARIOS));
  if (unknown.length === 0) return names as Name[];
  throw new CannotRunError(`There is no scenario ${unknown.join(', ')}.\n\n${HELP}`);
}

async function run(
  names: readonly Name[],
  { quick, keep, faults }: { quick: boolean; keep: boolean; faults: readonly string[] | null },
): Promise<Row[]> {
  const rows: Row[] = [];
  const onCrash = (part: string, how: string) => log(`${part} ended by itself (${how})`);
  const installation = await startInstallation({ log, onCrash, keep });
  const release = onStopSignals({
    onFirst: () => void installation.stop().finally(() => process.exit(130)),
    onSecond: () => process.exit(130),
  });
  try {
    const load = await startLoad(installation);
    try {
      for (const name of names) {
        log(`${name}:`);
        rows.push(...(await SCENARIOS[name]({ installation, load, quick, log, faults })));
      }
    } finally {
      await load.stop();
    }
  } finally {
    await installation.stop();
    release();
    if (rows.length > 0) process.stdout.write(`\n${reportText(rows)}`);
  }
  return rows;
}
