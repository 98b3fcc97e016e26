import { Command } from 'commander';
import { adminAction, adminFailure, alignedFields, alignedTable } from '../../platform/cli/admin-action.ts';
import { type ScreenLine, showLive } from '../../platform/cli/live-screen.ts';
import { shownUrl } from '../../platform/http/outbound-url.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { LATELY } from './database-questions.ts';
import { ageText } from './findings.ts';
import { type AnswerTo, askAll, healthOf, liveWorkers } from './questions.ts';

type BusyEndpoint = {
  id: string;
  wabaId: string;
  url: string;
  mode: string;
  successes: number;
  failures: number;
  averageMs: number;
};

/** Lines of the table of endpoints; a terminal has room for no more. */
const ENDPOINTS = 12;

const REFRESH_MS = 2_000;

const ASKED = ['pending', 'oldestPending', 'oldestDue', 'inbox', 'oldestBody', 'workers', 'traffic'] as const;

type Sight = { json: object; lines: ScreenLine[] };

export function topCommand(): Command {
  const command = new Command('top')
    .description(
      'show the current state of the installation: throughput, backlog, busiest and failing endpoints, workers',
    )
    .option('--once', 'print once and exit (default when the output is not a terminal)');
  return adminAction<{ once?: boolean; json?: boolean }>(
    command,
    'top --once',
    async ({ tools, options }) => {
      const isLive = process.stdout.isTTY && options.once !== true && options.json !== true;
      const { json, lines } = isLive ? await watch(tools.database) : await look(tools.database);
      return { json, text: lines.map(({ text }) => text).join('\n') };
    },
  );
}

/** Until the operator ends it; returns what was seen last. A database that is away for a while does not end it. */
async function watch(database: Database): Promise<Sight> {
  let last: Sight | null = null;
  const picture = async () => {
    try {
      last = await look(database);
    } catch (error) {
      const failure = adminFailure(error, null);
      if (last === null || failure === null) throw error;
      return [{ text: failure.message, look: 'alarming' } as const, ...last.lines.slice(1)];
    }
    return [{ text: `${last.lines[0]?.text}   q ends it` }, ...last.lines.slice(1)];
  };
  await showLive(picture, { input: process.stdin, output: process.stdout }, REFRESH_MS);
  return last ?? (await look(database));
}

async function look(database: Database): Promise<Sight> {
  const [found, endpoints] = await Promise.all([askAll(ASKED, { database }), listBusyEndpoints(database)]);
  const { pending, oldestPending, oldestDue, inbox, oldestBody, workers, traffic } = found;
  const { count, more, states } = pending;
  const json = {
    at: new Date().toISOString(),
    attemptsPerSecond: traffic,
    pending: { count, more, states, oldestAt: oldestPending, dueAt: oldestDue },
    inbox: { waiting: inbox.new, oldestAt: oldestBody, failed: inbox.failed },
    endpoints,
    workers: liveWorkers(workers),
  };
  return { json, lines: [...summary(json), { text: '' }, ...table(endpoints)] };
}

type Summary = {
  at: string;
  attemptsPerSecond: AnswerTo<'traffic'>;
  pending: AnswerTo<'pending'> & { oldestAt: Date | null; dueAt: Date | null };
  inbox: { waiting: number; oldestAt: Date | null; failed: number };
  workers: string[];
};

function summary({ at, attemptsPerSecond, pending, inbox, workers }: Summary): ScreenLine[] {
  const { delivered, failed } = attemptsPerSecond;
  const fields: [name: string, value: unknown, isAlarming: boolean][] = [
    ['time', at, false],
    ['attempts', `${delivered.toFixed(1)} delivered and ${failed.toFixed(1)} failed per second`, false],
    [
      'pending',
      `${pending.count}${pending.more ? '+' : ''}${since(', the oldest for', pending.oldestAt)}${since('; due for', pending.dueAt)}`,
      healthOf('oldestDue', pending.dueAt) !== 'up',
    ],
    ['states', Object.entries(pending.states).map(([state, count]) => `${state} ${count}`), false],
    [
      'inbox',
      `${inbox.waiting} bodies wait${since(', the oldest for', inbox.oldestAt)}; ${inbox.failed} failed`,
      inbox.failed > 0 || healthOf('oldestBody', inbox.oldestAt) !== 'up',
    ],
    [
      'workers',
      workers.length === 0 ? 'none runs' : `${workers.length}: ${workers.join(', ')}`,
      workers.length === 0,
    ],
  ];
  const texts = alignedFields(fields.map(([name, value]) => [name, value])).split('\n');
  return texts.map((text, index) => (fields[index]?.[2] ? { text, look: 'alarming' } : { text }));
}

function table(endpoints: readonly BusyEndpoint[]): ScreenLine[] {
  const texts = alignedTable(
    ['ENDPOINT', 'WABA', 'MODE', 'DELIVERED', 'FAILED', 'AVERAGE', 'URL'],
    endpoints.map(({ id, wabaId, mode, successes, failures, averageMs, url }) => [
      ...[id, wabaId, mode, successes, failures],
      ...[`${Math.round(averageMs)} ms`, url],
    ]),
    'no attempt in this minute and the one before',
  ).split('\n');
  return texts.map((text, index) => {
    if (index === 0) return { text, look: 'heading' };
    return (endpoints[index - 1]?.failures ?? 0) > 0 ? { text, look: 'alarming' } : { text };
  });
}

function since(words: string, at: Date | null): string {
  return at === null ? '' : `${words} ${ageText(at)}`;
}

/** Those that fail most first, then the busiest; what may be secret in a URL is masked. */
async function listBusyEndpoints(database: Database): Promise<BusyEndpoint[]> {
  const rows = await query<BusyEndpoint>(
    database,
    `select e.id, e.waba_id as "wabaId", e.url, h.mode, m.successes, m.failures, m.average_ms as "averageMs"
       from (select endpoint_id, sum(successes)::integer as successes, sum(failures)::integer as failures,
                    sum(total_ms) / greatest(1, sum(successes + failures)) as average_ms
               from endpoint_minutes where minute >= ${LATELY}
              group by endpoint_id order by sum(failures) desc, sum(successes) desc limit :endpoints) as m
       join webhook_endpoints e on e.id = m.endpoint_id
       join endpoint_health h on h.endpoint_id = e.id
      order by m.failures desc, m.successes desc, e.id`,
    { endpoints: ENDPOINTS },
  );
  return rows.map((row) => ({ ...row, url: shownUrl(row.url) }));
}
