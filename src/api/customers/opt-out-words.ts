import type { Command } from 'commander';
import { Type } from 'typebox';
import {
  MOST_WORDS,
  optOutWordsOf,
  setOptOutWords,
  type OptOutWords as Words,
} from '../../features/accounts/opt-out-words.ts';
import { type AdminOutcome, alignedFields } from '../../platform/cli/admin-action.ts';
import { named, namedClosed } from '../external/schema-kit.ts';
import { operation } from '../operations/operation.ts';
import { commandGroup, operationCommand } from '../operations/operation-command.ts';

const PATH = '/api/external/opt-outs/words';

const OptOutWords = named('OptOutWords', {
  optOutWords: Type.Array(Type.String(), { examples: [['STOP', 'BAJA']] }),
  optInWords: Type.Array(Type.String(), { examples: [['START', 'ALTA']] }),
});

const WORD = Type.String({ minLength: 1, maxLength: 200 });

function listOfWords(description: string, example: string[]) {
  return Type.Optional(
    Type.Array(WORD, {
      maxItems: MOST_WORDS,
      description: `${description} Left out: as before.`,
      examples: [example],
    }),
  );
}

const get = operation({
  id: 'getOptOutWords',
  method: 'GET',
  path: PATH,
  scope: 'read',
  summary: 'Get the words by which customers opt out',
  description: 'None unless the tenant has set some.',
  tag: 'Opt-outs',
  answers: { 200: { schema: OptOutWords, description: 'The words.' } },
  run: async ({ tools, wabaId }) => await optOutWordsOf(tools.database, wabaId),
  json: (words) => words,
  command: {
    name: 'opt-out-words show',
    help: 'show the words by which customers opt out, and in again',
    example: 'opt-out-words show --waba 900000000000101',
    waba: 'the WABA',
    show: shownWords,
  },
});

const set = operation({
  id: 'setOptOutWords',
  method: 'PUT',
  path: PATH,
  scope: 'send',
  summary: 'Set the words by which customers opt out',
  description:
    'A customer who writes one of `optOutWords` and nothing else, or presses a button with that text, gets no marketing of that number any more; one of `optInWords` ends that. Spaces around the word do not matter, nor do large and small letters. Messages count from then on.',
  tag: 'Opt-outs',
  requests: { words: { optOutWords: ['STOP', 'BAJA'], optInWords: ['START', 'ALTA'] } },
  body: namedClosed('NewOptOutWords', {
    optOutWords: listOfWords('The words that end marketing.', ['STOP', 'BAJA']),
    optInWords: listOfWords('The words that begin it again; none of the others.', ['START', 'ALTA']),
  }),
  answers: { 200: { schema: OptOutWords, description: 'The words, each once.' } },
  run: async ({ tools, wabaId }, words) => await setOptOutWords(tools, wabaId, words),
  json: (words) => words,
  command: {
    name: 'opt-out-words set',
    help: 'set the words by which customers opt out, and in again; "" for none',
    example: 'opt-out-words set --waba 900000000000101 --opt-out STOP,BAJA --opt-in START',
    waba: 'the WABA',
    options: {
      optOutWords: {
        flags: '--opt-out <words>',
        help: 'separated by commas (default: as before)',
      },
      optInWords: { flags: '--opt-in <words>', help: 'separated by commas (default: as before)' },
    },
    show: shownWords,
  },
});

function shownWords(words: Words, { call: { wabaId } }: { call: { wabaId: string } }): AdminOutcome {
  const shown = (some: readonly string[]) => (some.length === 0 ? 'none' : some.join(', '));
  return {
    json: { wabaId, ...words },
    text: alignedFields([
      ['WABA', wabaId],
      ['opt out by', shown(words.optOutWords)],
      ['opt in by', shown(words.optInWords)],
    ]),
  };
}

export const OPT_OUT_WORDS_OPERATIONS = [get, set];

export function optOutWordsCommand(): Command {
  const description = 'words by which customers stop and resume marketing';
  return commandGroup('opt-out-words', description, [set, get].map(operationCommand));
}
