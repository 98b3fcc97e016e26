import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { AccountError } from '../../../accounts/account-error.ts';
import { acceptInvitation, invitationBehind } from '../../../accounts/invitations.ts';
import type { Invitation } from '../../../database/invitations.ts';
import { postForm } from '../components/form.ts';
import { html } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { formLine } from './form-schema.ts';
import type { FormTokens } from './form-tokens.ts';
import { personFields } from './new-person.ts';
import { PAGES } from './page-access.ts';
import { PageError } from './page-error.ts';
import { sendPage } from './send-page.ts';
import { beginInBrowser } from './session-start.ts';
import type { SignInLimit } from './sign-in-limit.ts';
import { visitorOf } from './visitor.ts';

const PATH = '/portal/invitations/:token';

type Shown = { token: string; name: string; error: AccountError | null };

/** /portal/invitations/:token: a link shows a form, and only the form uses the link up. */
export function invitationPages(
  app: PortalApp,
  context: PortalContext,
  { tokens, limit }: { tokens: FormTokens; limit: SignInLimit },
): void {
  const { database } = context;
  const params = Type.Object({ token: Type.String() });
  app.get(PATH, { config: PAGES.open, schema: { params } }, async (request, reply) => {
    const { token } = request.params;
    const invitation = await orClosed(() => invitationBehind({ database }, token));
    return showInvitation(request, reply, { tokens, invitation }, { token, name: '', error: null });
  });

  const body = Type.Object({ name: Type.Optional(formLine()), password: formLine(4_096) });
  app.post(PATH, { config: PAGES.open, schema: { params, body } }, async (request, reply) => {
    const { token } = request.params;
    const { name = '', password } = request.body;
    await limit.count(request.ip, null);
    const invitation = await orClosed(() => invitationBehind({ database }, token));
    try {
      const session = await orClosed(() =>
        acceptInvitation({ database }, token, { name, password }, visitorOf(request)),
      );
      await limit.succeeded(request.ip, null);
      await beginInBrowser(context, request, reply, session);
      return reply.redirect('/portal', 303);
    } catch (error) {
      if (!(error instanceof AccountError)) throw error;
      return showInvitation(request, reply, { tokens, invitation }, { token, name, error });
    }
  });
}

function showInvitation(
  request: FastifyRequest,
  reply: FastifyReply,
  { tokens, invitation }: { tokens: FormTokens; invitation: Invitation },
  { token, name, error }: Shown,
): FastifyReply {
  const { email, businessName, role, userId } = invitation;
  const isNew = userId === null;
  const fields = isNew ? { name, error } : { error, label: 'New password' };
  const body = html`<p>E-mail address: <strong>${email}</strong></p>
${postForm(
  tokens.issue(request, reply),
  `/portal/invitations/${token}`,
  html`${personFields(fields)}
<div class="buttons"><button class="primary">${isNew ? 'Create the account' : 'Set the password'}</button></div>`,
)}`;
  const rights = { operator: 'an operator', admin: 'an administrator', member: 'a member' }[role];
  const lead = isNew
    ? `You are invited as ${rights} of ${businessName ?? 'this installation'}.`
    : 'Choose a new password. You are signed out everywhere else.';
  const title = isNew ? 'Welcome' : 'New password';
  return sendPage(reply, { title, viewer: null, lead, body }, error === null ? 200 : 422);
}

/** One page for links that were used, withdrawn, are too old, or never were. */
async function orClosed<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof AccountError) || error.code !== 'unknown_invitation') throw error;
    throw new PageError(404, 'This link does not work', `${error.message} Ask for a new one, or sign in.`);
  }
}
