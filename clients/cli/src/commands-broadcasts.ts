import {
  type FileRecipient,
  pagesOfRecipients,
  type RecipientFile,
  readRecipientFile,
} from '../../../src/features/messages/broadcasts/recipient-file.ts';
import { RequestError } from '../../../src/platform/request-input.ts';
import type {
  AddedRecipients,
  Broadcast,
  BroadcastDetails,
  BroadcastList,
} from '../../typescript/src/generated/types.gen.js';
import { type Command, type Context, textOf, type Values } from './command.ts';
import { limitOf } from './commands-events.ts';
import { EXIT, type ExitCode, wrongUsage } from './failure.ts';
import { readText } from './given-files.ts';
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

const text = (value: string, help: string) => ({ type: 'string', value, help }) as const;

const RECIPIENTS = text(
  '<@file|->',
  'one number to a line, or CSV whose first line names its columns: to, ref, and the variables of the body by their places (1, 2, …) or names',
);

const createBroadcast: Command = {
  name: 'create-broadcast',
  summary: 'create a broadcast as a draft: nothing is sent before its start',
  options: {
    name: text('<name>', 'for you: customers do not see it'),
    from: text('<phoneNumberId>', 'number to send from'),
    template: text('<name>', 'name of the message template'),
    language: text('<code>', 'language of the template, such as en_US'),
    components: text(
      '<json|@file|->',
      'components that are the same for all recipients, as upstream takes them',
    ),
    at: text('<time>', 'begin then, once started, such as 2026-12-01T09:00:00+01:00'),
    recipients: RECIPIENTS,
  },
  examples: [
    'heliograph create-broadcast --name "Winter sale" --from 800000000000111 --template winter_sale --language en_US --recipients @customers.csv',
  ],
  async run(context, _operands, values) {
    const needed = (name: string) => {
      const value = textOf(values, name);
      if (value === undefined) throw wrongUsage(`Say --${name} too.`);
      return value;
    };
    const given = textOf(values, 'components');
    const components = given === undefined ? undefined : jsonOf(readText(given, 'components'));
    const template = { name: needed('template'), language: { code: needed('language') }, components };
    const body = {
      name: needed('name'),
      phoneNumberId: needed('from'),
      template,
      sendAt: textOf(values, 'at'),
    };
    // A file that cannot be read leaves no draft behind.
    const file = textOf(values, 'recipients') === undefined ? null : fileOf(values);
    const made = await context.api().call<BroadcastDetails>('POST', PATH, { body });
    if (file === null) return show(context, made);
    context.output.note(`Broadcast ${made.id} is created.`);
    return await addFile(context, made.id, file);
  },
};

function jsonOf(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw wrongUsage(`--components is no JSON: ${(error as Error).message}`);
  }
}

const addRecipients: Command = {
  name: 'add-recipients',
  operands: '<broadcast>',
  count: [1, 1],
  summary: 'add recipients to a broadcast that was not started',
  details:
    'Each line that is wrong is named, the others are added. The same file may be added again: who is there already is not added twice.',
  options: { recipients: RECIPIENTS },
  examples: ['heliograph add-recipients 12 --recipients @customers.csv'],
  run: (context, [id = ''], values) => addFile(context, id, fileOf(values)),
};

const MOST_LINES = 100_000;

function fileOf(values: Values): RecipientFile {
  const given = textOf(values, 'recipients');
  if (given === undefined) throw wrongUsage('Say --recipients @file, or --recipients - for standard input.');
  try {
    return readRecipientFile(readText(given, 'recipients'), MOST_LINES);
  } catch (error) {
    throw error instanceof RequestError ? wrongUsage(error.message) : error;
  }
}

async function addFile(
  { api, output, isJson }: Context,
  id: string,
  { recipients, problems }: RecipientFile,
): Promise<ExitCode> {
  const wrong = problems.map(({ line, message }) => ({ line, message }));
  const counts = { added: 0, duplicate: 0 };
  let sent = 0;
  for (const page of pagesOfRecipients(recipients)) {
    const path = `${PATH}/${encodeURIComponent(id)}/recipients`;
    const body = { recipients: page.map(({ given }) => given) };
    const result = await api()
      .call<AddedRecipients>('POST', path, { body })
      .catch((error: unknown) => {
        if (sent > 0)
          output.note(`${sent} of ${recipients.length} were sent before. Add the same file again to go on.`);
        throw error;
      });
    sent += page.length;
    counts.added += result.added;
    counts.duplicate += result.duplicate;
    wrong.push(...problemsOf(page, result));
  }
  wrong.sort((a, b) => a.line - b.line);
  if (isJson) output.json({ ...counts, invalid: wrong.length, lines: wrong });
  else {
    if (wrong.length > 0)
      output.line(
        table(
          ['LINE', 'WHAT IS WRONG'],
          wrong.map(({ line, message }) => [String(line), printable(message)]),
        ),
      );
    output.line(`${counts.added} added, ${counts.duplicate} were there already, ${wrong.length} not added.`);
  }
  return wrong.length === 0 ? EXIT.ok : EXIT.failed;
}

function problemsOf(page: readonly FileRecipient[], { lines }: AddedRecipients) {
  return page.flatMap(({ line }, at) => {
    const result = lines[at];
    return result?.result === 'invalid' ? [{ line, message: result.message ?? '' }] : [];
  });
}

export const BROADCAST_COMMANDS: readonly Command[] = [broadcasts, createBroadcast, addRecipients, broadcast];
