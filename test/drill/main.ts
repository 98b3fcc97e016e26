import { parseArgs } from 'node:util';
import { runDrillCommand } from './drill-command.ts';
import type { DrillOptions } from './drill-result.ts';
import { reportOf } from './report.ts';
import { runDrill } from './run-drill.ts';

const HELP = `Zero-loss drill: kills and freezes the parts of Heliograph while upstream sends, then checks
that everything that was answered 200 has arrived everywhere, in order and unaltered.

  npm run drill -- [options]

  --kills N        kill -9 of API, workers, Temporal, PostgreSQL and MinIO (20); pauses come on top
  --temporal-away P  Temporal is killed or frozen for P percent of the time, beside the kills (0)
  --seed S         what everything random comes from (1)
  --events N       send at least so many events (25 per kill)
  --endpoints K    webhook endpoints, good and bad (10)
  --processes HOW  API and first worker in one process, or in two (one)
  --rate R         events per second from upstream (12)
  --drain-seconds  how long the last deliveries may take once all is calm (300)
  --json FILE      write the result with the log of the kills
  --help

Exit code 0: nothing was lost, disordered or altered. 1: something was; the data is kept. 2: wrong options.
`;

process.exitCode = await runDrillCommand({ help: HELP, readOptions, run: runDrill, reportOf });

function readOptions(): { options: DrillOptions; json: string | undefined } | null {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    options: {
      kills: text,
      'temporal-away': text,
      seed: text,
      events: text,
      endpoints: text,
      rate: text,
      processes: text,
      'drain-seconds': text,
      json: text,
      help: { type: 'boolean' },
    },
  });
  if (values.help === true) return null;
  const kills = whole('--kills', values.kills, 20, 0);
  const options = {
    kills,
    temporalAwayPercent: percent('--temporal-away', values['temporal-away']),
    seed: whole('--seed', values.seed, 1, 0),
    events: whole('--events', values.events, 25 * kills, 1),
    endpoints: whole('--endpoints', values.endpoints, 10, 1),
    eventsPerSecond: whole('--rate', values.rate, 12, 1),
    processes: oneOrTwo(values.processes ?? 'one'),
    drainTimeoutMs: 1_000 * whole('--drain-seconds', values['drain-seconds'], 300, 1),
  };
  return { options, json: values.json };
}

function percent(name: string, text: string | undefined): number {
  const value = whole(name, text, 0, 0);
  if (value > 90) throw new Error(`${name} must be at most 90`);
  return value;
}

function oneOrTwo(text: string): DrillOptions['processes'] {
  if (text !== 'one' && text !== 'two') throw new Error('--processes must be one or two');
  return text;
}

function whole(name: string, text: string | undefined, fallback: number, minimum: number): number {
  const value = text === undefined ? fallback : Number(text);
  if (!Number.isSafeInteger(value) || value < minimum || value > 10_000_000) {
    throw new Error(`${name} must be a whole number from ${minimum}`);
  }
  return value;
}
