import { parseArgs } from 'node:util';
import { runDrillCommand } from '../drill-command.ts';
import { type RestoreOptions, reportOf } from './restore-result.ts';
import { runRestoreDrill } from './run-restore-drill.ts';

const HELP = `Restore drill: PostgreSQL, Temporal and object store are lost and restored under load, one after the other.
After each restore heliograph-server reconcile fixes what differs, and it is checked that nothing that the restored database
knows is lost, disordered, altered or sent twice. Prints what was lost (RPO) and how long it took (RTO).

  npm run drill:restore -- [options]

  --back-minutes M     how far PostgreSQL is taken back (10)
  --between-seconds S  load before that moment, and before each other loss (60)
  --archive-seconds A  archive_timeout of PostgreSQL (60)
  --rate R             events per second from upstream (12)
  --sends N            messages per second that tenants send (1)
  --endpoints K        webhook endpoints, good and bad (10)
  --repeat-one-of N    upstream sends one of so many forgotten bodies again (5)
  --seed S             what everything random comes from (1)
  --json FILE          write the result
  --help

Exit code 0: all is well. 1: something was not; the data is kept. 2: wrong options.
`;

process.exitCode = await runDrillCommand({ help: HELP, readOptions, run: runRestoreDrill, reportOf });

function readOptions(): { options: RestoreOptions; json: string | undefined } | null {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    options: {
      'back-minutes': text,
      'between-seconds': text,
      'archive-seconds': text,
      rate: text,
      sends: text,
      endpoints: text,
      'repeat-one-of': text,
      seed: text,
      json: text,
      help: { type: 'boolean' },
    },
  });
  if (values.help === true) return null;
  const options = {
    backMinutes: number('--back-minutes', values['back-minutes'], 10, 0.1),
    betweenSeconds: number('--between-seconds', values['between-seconds'], 60, 1),
    archiveSeconds: number('--archive-seconds', values['archive-seconds'], 60, 1),
    eventsPerSecond: number('--rate', values.rate, 12, 1),
    sendsPerSecond: number('--sends', values.sends, 1, 0.1),
    endpoints: number('--endpoints', values.endpoints, 10, 1),
    repeatOneOf: number('--repeat-one-of', values['repeat-one-of'], 5, 1),
    seed: number('--seed', values.seed, 1, 0),
  };
  return { options, json: values.json };
}

function number(name: string, text: string | undefined, fallback: number, minimum: number): number {
  const value = text === undefined ? fallback : Number(text);
  if (Number.isFinite(value) && value >= minimum && value <= 100_000) return value;
  throw new Error(`${name} must be a number from ${minimum}`);
}
