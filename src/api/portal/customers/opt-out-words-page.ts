import { MOST_WORDS, optOutWordsOf, setOptOutWords } from '../../../features/accounts/opt-out-words.ts';
import { PAGES } from '../access/page-access.ts';
import { formPage } from '../kits/form-page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { OPT_OUTS, optOutsTrail, WORDS } from './opt-out-pages.ts';

/** Words by which customers stop and resume marketing. */
export function optOutWordsPage(app: PortalApp, context: PortalContext): void {
  formPage(app, context, {
    path: WORDS,
    access: PAGES.admin,
    active: 'conversations',
    title: 'Opt-out words',
    lead: 'A customer who writes one of these words and nothing else, or presses a button with that text, gets no more marketing messages of that number. “Stop” can also be the answer to a question of yours: choose words that mean nothing else.',
    trail: optOutsTrail,
    load: async ({ waba }) => await optOutWordsOf(context.database, waba.wabaId),
    fields: [
      {
        name: 'optOutWords',
        label: 'Words that stop marketing',
        widget: 'lines',
        rows: 5,
        hint: `One to a line, up to ${MOST_WORDS}. Large and small letters make no difference. None: off.`,
      },
      {
        name: 'optInWords',
        label: 'Words that begin it again',
        widget: 'lines',
        rows: 5,
        hint: 'They end what such a word began, and what your team or your API noted about marketing of that number.',
      },
    ],
    values: ({ optOutWords, optInWords }) => ({
      optOutWords: optOutWords.join('\n'),
      optInWords: optInWords.join('\n'),
    }),
    button: 'Save',
    submit: async (visit, given) => {
      await setOptOutWords(visit.tools, visit.waba.wabaId, {
        optOutWords: given.text('optOutWords').split('\n'),
        optInWords: given.text('optInWords').split('\n'),
      });
      return `${visit.at(OPT_OUTS)}?done=words`;
    },
  });
}
