import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { RequestError } from '../../../platform/request-input.ts';
import { createFirstOperator, mayBeSetUp, type SetUpTools } from '../../../users/first-operator.ts';
import { formLine } from '../access/form-schema.ts';
import type { FormTokens } from '../access/form-tokens.ts';
import { PAGES } from '../access/page-access.ts';
import { PageError } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { beginInBrowser } from '../access/session-start.ts';
import { visitorOf } from '../access/visitor.ts';
import { postForm } from '../components/form.ts';
import { html } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { personFields } from './new-person.ts';

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
