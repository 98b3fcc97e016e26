import type { Broadcast, BroadcastDetails, BroadcastList } from '../../typescript/src/generated/types.gen.js';
import type { Command, Context } from './command.ts';
import { limitOf } from './commands-events.ts';
import { EXIT, type ExitCode, wrongUsage } from './failure.ts';
import { bar, fields, printable, table } from './output.ts';

const PATH = '/api/external/broadcasts';
const VERBS = ['start', 'pause', 'resume', 'cancel'] as const;

function show({ output, isJson }: Context, broadcast: BroadcastDetails): ExitCode {
  if (isJson) output.json(broadcast);
  else output.line(fields(factsOf(broadcast)));
  return EXIT.ok;
}

function factsOf({ counts, ...broadcast }: BroadcastDetails): [string, string | undefined][] {
  const { failedByCode, ...states } = counts;
  const { recipients } = broadcast;
  const codes = Object.entries(failedByCode).map(([code, n]) => `${code}: ${n}`);
  return [
    ['id', broadcast.id],
    ['name', printable(broadcast.name)],
    ['state', broadcast.state],
    ['paused because', broadcast.pausedBecause ?? undefined],
    ['settled', bar(recipients - counts.pending - counts.queued, recipients)],
    ...Object.entries(states).map(([state, n]): [string, string] => [state, String(n)]),
    ['failures', codes.length === 0 ? undefined : codes.join(', ')],
    ['begins', broadcast.sendAt ?? undefined],
    ['finished', broadcast.finishedAt ?? undefined],
  ];
}

function rowOf({ id, name, state, recipients, pending, createdAt }: Broadcast): string[] {
  return [id, createdAt, state, `${recipients - pending} of ${recipients}`, printable(name)];
}

const broadcasts: Command = {
  name: 'broadcasts',
  operands: '[broadcast]',
  count: [0, 1],
  summary: 'list broadcasts, or show one with its counts',
  options: { limit: { type: 'string', value: '<n>', help: 'how many to show, 25 unless set' } },
  examples: ['heliograph broadcasts', 'heliograph broadcasts 12'],
  async run(context, [id], values) {
    const { api, output, isJson } = context;
    if (id !== undefined) {
      return show(context, await api().call<BroadcastDetails>('GET', `${PATH}/${encodeURIComponent(id)}`));
    }
    const query = { limit: String(limitOf(values)) };
    const { data, hasMore } = await api().call<BroadcastList>('GET', PATH, { query });
    if (isJson) output.json(data);
    else if (data.length === 0) output.note('There are no broadcasts.');
    else output.line(table(['BROADCAST', 'CREATED', 'STATE', 'QUEUED', 'NAME'], data.map(rowOf)));
    if (hasMore) output.note('There are more: --limit shows up to 100.');
    return EXIT.ok;
  },
};

const broadcast: Command = {
  name: 'broadcast',
  operands: `<broadcast> <${VERBS.join('|')}>`,
  count: [2, 2],
  summary: 'start, pause, resume or cancel a broadcast',
  options: {},
  examples: ['heliograph broadcast 12 start', 'heliograph broadcast 12 pause'],
  async run(context, [id = '', verb = '']) {
    if (!VERBS.some((one) => one === verb)) throw wrongUsage(`Say ${VERBS.join(', ')}.`);
    const path = `${PATH}/${encodeURIComponent(id)}/${verb}`;
    return show(context, await context.api().call<BroadcastDetails>('POST', path));
  },
};

export const BROADCAST_COMMANDS: readonly Command[] = [broadcasts, broadcast];
