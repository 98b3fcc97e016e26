import type { Logger } from 'pino';
import {
  createFirstOperator,
  mayBeSetUp,
  type SetUpTools,
  setUpPath,
} from '../../../features/users/first-operator.ts';
import { hasUsers } from '../../../features/users/user-store.ts';
import type { Config } from '../../../platform/config/config.ts';
import { parseEncryptionKeys } from '../../../platform/crypto/secret-box.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown, PageError } from '../access/page-error.ts';
import { beginInBrowser } from '../access/session-cookie.ts';
import { formPage } from '../kits/form-page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { CODE, EMAIL, NAME, NEW_PASSWORD } from './person-fields.ts';

export function setUpPages(app: PortalApp, context: PortalContext, tools: SetUpTools): void {
  formPage(app, context, {
    path: '/portal/set-up',
    access: PAGES.open,
    active: '',
    query: ['code'],
    title: 'Set up',
    viewer: null,
    lead: 'This installation has no users yet. The first one is an operator, who invites the others.',
    load: async (visit) => {
      const code = visit.carried('code');
      if (!(await mayBeSetUp(tools, code))) throw linkClosed();
      return { code };
    },
    fields: [
      { name: CODE.name, label: '', widget: 'hidden' },
      EMAIL,
      NAME,
      { ...NEW_PASSWORD, label: 'Password' },
    ],
    values: ({ code }) => ({ code }),
    button: 'Create the operator',
    submit: async (visit, given, { code }) => {
      const [email, name, password] = [given.text('email'), given.text('name'), given.text('password')];
      const token = await orShown(
        () => createFirstOperator(tools, { code, email, name, password }, visit.visitor),
        (error) => {
          throw error.code === 'set_up_closed' ? linkClosed() : error;
        },
      );
      await beginInBrowser(visit, token);
      return '/portal';
    },
  });
}

function linkClosed(): PageError {
  return new PageError(
    404,
    'This link does not work',
    'The set-up link works only while there is no user. If you have an account, sign in.',
  );
}

const NO_PASSWORDS =
  'the portal has no users and no sign-in by password: make the first operator with admin user invite --role operator';

/** Logs the link that makes the first operator, while there is none. Nothing waits for it. */
export async function announceSetUp(config: Config, database: Database, logger: Logger): Promise<void> {
  try {
    if (!config.portal.passwordSignIn) {
      if (!(await hasUsers(database))) logger.info(NO_PASSWORDS);
      return;
    }
    const path = await setUpPath({ database, encryptionKeys: parseEncryptionKeys(config.encryptionKeys) });
    if (path === null) return;
    logger.info(
      { url: `${config.api.publicUrl}${path}` },
      'the portal has no users: this link makes the first operator',
    );
  } catch (error) {
    logger.warn({ err: error }, 'could not check whether the portal has users');
  }
}
