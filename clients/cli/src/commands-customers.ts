import type {
  ControlledThread,
  EndOptOutResponse,
  OptOut,
  OptOutList,
  OptOutWords,
} from '../../typescript/src/generated/types.gen.js';
import { type Command, textOf, type Values } from './command.ts';
import { limitOf } from './commands-events.ts';
import { EXIT, wrongUsage } from './failure.ts';
import { printable, table } from './output.ts';

const SOURCES = ['upstream', 'error_131050', 'keyword', 'api', 'portal'] as const;
const SCOPES = ['marketing', 'all'] as const;
const PATH = '/api/external/opt-outs';

const NUMBER = { type: 'string', value: '<phoneNumberId>' } as const;

function optOutTable(optOuts: readonly OptOut[]): string {
  const rows = optOuts.map(({ customer, phoneNumberId, scope, source, since, reason }) => [
    printable(customer.waId ?? customer.userId ?? 'an erased customer'),
    printable(customer.name ?? customer.username ?? ''),
    ...[phoneNumberId ?? 'all', scope, source, since, printable(reason ?? '')],
  ]);
  return table(['CUSTOMER', 'NAME', 'NUMBER', 'SCOPE', 'SOURCE', 'SINCE', 'REASON'], rows);
}

function requiredText(values: Values, name: string, hint: string): string {
  const text = textOf(values, name);
  if (text === undefined) throw wrongUsage(`--${name} is missing: ${hint}.`);
  return text;
}

const optOuts: Command = {
  name: 'opt-outs',
  summary: 'list customers who want no marketing, or no messages',
  options: {
    customer: { type: 'string', value: '<number>', help: 'phone number or user id of one customer' },
    number: { ...NUMBER, help: 'those that hold at this number' },
    source: {
      type: 'string',
      value: '<source>',
      help: `those that came from ${SOURCES.join(', ')}`,
      choices: SOURCES,
    },
    limit: { type: 'string', value: '<n>', help: 'how many to show, 25 unless set' },
  },
  examples: ['heliograph opt-outs --source upstream', 'heliograph opt-outs --customer +12025550143'],
  async run({ api, output, isJson }, _operands, values) {
    const body = {
      customer: textOf(values, 'customer'),
      phoneNumberId: textOf(values, 'number'),
      source: textOf(values, 'source'),
      limit: limitOf(values),
    };
    const { data, hasMore } = await api().call<OptOutList>('POST', `${PATH}/search`, { body });
    if (isJson) output.json(data);
    else if (data.length === 0) output.note('There are no such opt-outs.');
    else output.line(optOutTable(data));
    if (hasMore) output.note('There are more: --limit shows up to 100.');
    return EXIT.ok;
  },
};

const optOut: Command = {
  name: 'opt-out',
  operands: '<customer>',
  count: [1, 1],
  summary: 'note that a customer wants no marketing, or no messages',
  details:
    'Messages that the customer does not want are then refused with recipient_opted_out. With --scope all, only messages within the customer service window go out.',
  options: {
    scope: { type: 'string', value: '<scope>', help: SCOPES.join(' or '), choices: SCOPES },
    number: { ...NUMBER, help: 'at this number only; without it at all' },
    reason: { type: 'string', value: '<text>', help: 'for people' },
  },
  examples: ['heliograph opt-out +12025550143 --scope marketing --reason "asked by phone"'],
  async run({ api, output, isJson }, [customer = ''], values) {
    const body = {
      customer,
      scope: requiredText(values, 'scope', SCOPES.join(' or ')),
      phoneNumberId: textOf(values, 'number'),
      reason: textOf(values, 'reason'),
    };
    const noted = await api().call<OptOut>('POST', PATH, { body });
    if (isJson) output.json(noted);
    else output.line(optOutTable([noted]));
    return EXIT.ok;
  },
};

const endOptOut: Command = {
  name: 'end-opt-out',
  operands: '<customer>',
  count: [1, 1],
  summary: 'end the opt-outs of a customer that a word, the API or the portal noted',
  details:
    'One that upstream reported ends only when the customer resumes in WhatsApp. The evidence is kept in the audit log.',
  options: {
    evidence: { type: 'string', value: '<text>', help: 'how the customer agreed, without personal data' },
    number: { ...NUMBER, help: 'that of this number; without it all' },
  },
  examples: ['heliograph end-opt-out +12025550143 --evidence "signed form of 2026-11-20"'],
  async run({ api, output, isJson }, [customer = ''], values) {
    const evidence = requiredText(values, 'evidence', 'say how the customer agreed to messages again');
    const body = { customer, evidence, phoneNumberId: textOf(values, 'number') };
    const result = await api().call<EndOptOutResponse>('POST', `${PATH}/end`, { body });
    if (isJson) output.json(result);
    else {
      output.line(`Ended: ${result.ended}.`);
      if (result.left.length > 0) output.line(`\nThese still hold:\n${optOutTable(result.left)}`);
    }
    return EXIT.ok;
  },
};

const optOutWords: Command = {
  name: 'opt-out-words',
  summary: 'show or set the words by which customers opt out of marketing, and in again',
  details: 'A list that is left out stays as it is; an empty text empties it.',
  options: {
    'opt-out': { type: 'string', value: '<words>', help: 'separated by commas' },
    'opt-in': { type: 'string', value: '<words>', help: 'separated by commas' },
  },
  examples: ['heliograph opt-out-words', 'heliograph opt-out-words --opt-out STOP,BAJA --opt-in START'],
  async run({ api, output, isJson }, _operands, values) {
    const body = { optOutWords: wordsIn(values, 'opt-out'), optInWords: wordsIn(values, 'opt-in') };
    const isSet = body.optOutWords !== undefined || body.optInWords !== undefined;
    const words = await api().call<OptOutWords>(
      isSet ? 'PUT' : 'GET',
      `${PATH}/words`,
      isSet ? { body } : {},
    );
    if (isJson) output.json(words);
    else {
      const line = (some: readonly string[]) => some.map(printable).join(', ') || 'none';
      output.line(`Opt out: ${line(words.optOutWords)}\nOpt in: ${line(words.optInWords)}`);
    }
    return EXIT.ok;
  },
};

function wordsIn(values: Values, name: string): string[] | undefined {
  return values[name] === undefined
    ? undefined
    : String(values[name])
        .split(',')
        .map((word) => word.trim())
        .filter((word) => word !== '');
}

const ACTIONS = ['take', 'pass', 'release'] as const;

const thread: Command = {
  name: 'thread',
  operands: `<conversation> <${ACTIONS.join('|')}>`,
  count: [2, 2],
  summary: 'take, pass or release a conversation that several responders share',
  details:
    'take is for the escalation partner, pass gives the conversation to that partner, and after release upstream chooses who gets the next message. Upstream is called once.',
  options: {
    metadata: { type: 'string', value: '<text>', help: 'for who gets the conversation' },
  },
  examples: ['heliograph thread 42 take', 'heliograph thread 42 pass --metadata "wants a refund"'],
  async run({ api, output, isJson }, [id = '', action = ''], values) {
    if (!ACTIONS.some((one) => one === action))
      throw wrongUsage(`There is no action ${JSON.stringify(action)}. Actions: ${ACTIONS.join(', ')}.`);
    const body = { action, metadata: textOf(values, 'metadata') };
    const path = `/api/external/conversations/${encodeURIComponent(id)}/thread`;
    const controlled = await api().call<ControlledThread>('POST', path, { body });
    if (isJson) output.json(controlled);
    else {
      const { owner, role, since } = controlled.thread ?? { owner: 'none', role: null, since: '' };
      const rows = [[owner, printable(role ?? ''), since]];
      output.line(table(['OWNER', 'ROLE', 'SINCE'], rows));
    }
    return EXIT.ok;
  },
};

export const CUSTOMER_COMMANDS: readonly Command[] = [optOuts, optOut, endOptOut, optOutWords, thread];
