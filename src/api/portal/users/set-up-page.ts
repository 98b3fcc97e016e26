import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { Type } from 'typebox';
import type { Config } from '../../../platform/config/config.ts';
import { parseEncryptionKeys } from '../../../platform/crypto/secret-box.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { RequestError } from '../../../platform/request-input.ts';
import {
  createFirstOperator,
  mayBeSetUp,
  type SetUpTools,
  setUpPath,
} from '../../../users/first-operator.ts';
import { hasUsers } from '../../../users/user-store.ts';
import type { FormTokens } from '../access/form-tokens.ts';
import { PAGES } from '../access/page-access.ts';
import { PageError } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { beginInBrowser } from '../access/session-cookie.ts';
import { visitorOf } from '../access/viewer.ts';
import { postForm } from '../components/form.ts';
import { formLine } from '../form-values.ts';
import { html } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { personFields } from './invited-person.ts';

type Given = { code: string; email: string; name: string };

/** /portal/set-up: makes the first operator, once. */
export function setUpPages(
  app: PortalApp,
  context: PortalContext,
  tools: SetUpTools & { tokens: FormTokens },
): void {
  const query = Type.Object({ code: Type.Optional(Type.String()) });
  app.get(
    '/portal/set-up',
    { config: PAGES.open, schema: { querystring: query } },
    async (request, reply) => {
      const { code = '' } = request.query;
      if (!(await mayBeSetUp(tools, code))) throw linkClosed();
      return showSetUp(request, reply, tools.tokens, { code, email: '', name: '' }, null);
    },
  );

  const body = Type.Object({
    code: formLine(),
    email: formLine(),
    name: formLine(),
    password: formLine(4_096),
  });
  app.post('/portal/set-up', { config: PAGES.open, schema: { body } }, async (request, reply) => {
    try {
      const token = await createFirstOperator(tools, request.body, visitorOf(request));
      await beginInBrowser(context, request, reply, token);
      return reply.redirect('/portal', 303);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      if (error.code === 'set_up_closed') throw linkClosed();
      return showSetUp(request, reply, tools.tokens, request.body, error);
    }
  });
}

function showSetUp(
  request: FastifyRequest,
  reply: FastifyReply,
  tokens: FormTokens,
  { code, email, name }: Given,
  error: RequestError | null,
): FastifyReply {
  const form = postForm(
    tokens.issue(request, reply),
    '/portal/set-up',
    html`<input type="hidden" name="code" value="${code}">
${personFields({ email, name, error })}
<div class="buttons"><button class="primary">Create the operator</button></div>`,
  );
  const lead = 'This installation has no users yet. The first one is an operator, who invites the others.';
  return sendPage(reply, { title: 'Set up', viewer: null, lead, body: form }, error === null ? 200 : 422);
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
