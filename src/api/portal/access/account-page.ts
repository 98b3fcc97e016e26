import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { AccountError } from '../../../accounts/account-error.ts';
import { changePassword } from '../../../accounts/sign-in.ts';
import { endSession, sessionsOf } from '../../../accounts/user-sessions.ts';
import type { SessionSummary } from '../../../database/user-sessions.ts';
import { findUser } from '../../../database/users.ts';
import { accountObjectId } from '../../external/object-id.ts';
import { badge } from '../components/badge.ts';
import { actionButton, postForm, textField } from '../components/form.ts';
import { noticeAfter } from '../components/notice.ts';
import { dataTable, detailList } from '../components/table.ts';
import { exactTime, timeAgo } from '../components/time.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { EMPTY_FORM, formLine } from './form-schema.ts';
import { PAGES } from './page-access.ts';
import { pageNotFound } from './page-error.ts';
import { sendPage } from './send-page.ts';
import { sessionCookie } from './session-cookie.ts';
import type { SignInLimit } from './sign-in-limit.ts';
import { sessionOf, type Viewer, viewerOf } from './viewer.ts';
import { visitorOf } from './visitor.ts';

const DONE = {
  password: 'Your password is changed. All your other sessions are ended.',
  session: 'The session is ended.',
};

/** /portal/account: one's own password and sessions. */
export function accountPages(
  app: PortalApp,
  context: PortalContext,
  { limit }: { limit: SignInLimit },
): void {
  const { database } = context;
  const query = Type.Object({ done: Type.Optional(Type.String()) });
  app.get(
    '/portal/account',
    { config: PAGES.signedIn, schema: { querystring: query } },
    async (request, reply) => showAccount(request, reply, context, { done: request.query.done, error: null }),
  );

  const body = Type.Object({ current: formLine(4_096), password: formLine(4_096) });
  app.post(
    '/portal/account/password',
    { config: PAGES.signedIn, schema: { body } },
    async (request, reply) => {
      const { userId, email } = viewerOf(request);
      const { current, password } = request.body;
      // Whoever sits at an unlocked screen shall not guess the password there.
      await limit.count(request.ip, email);
      try {
        const token = await changePassword(
          { database },
          userId,
          { current, next: password },
          visitorOf(request),
        );
        await limit.succeeded(request.ip, email);
        sessionCookie.set(reply, token);
        return reply.redirect('/portal/account?done=password', 303);
      } catch (error) {
        if (!(error instanceof AccountError)) throw error;
        return await showAccount(request, reply, context, { done: undefined, error });
      }
    },
  );

  const params = Type.Object({ id: Type.String() });
  const schema = { params, body: EMPTY_FORM };
  app.post('/portal/account/sessions/:id/end', { config: PAGES.signedIn, schema }, async (request, reply) => {
    await endSession({ database }, viewerOf(request).userId, accountObjectId(request.params.id));
    return reply.redirect('/portal/account?done=session', 303);
  });
}

async function showAccount(
  request: FastifyRequest,
  reply: FastifyReply,
  { database, now }: PortalContext,
  { done, error }: { done: string | undefined; error: AccountError | null },
): Promise<FastifyReply> {
  const { id, viewer } = sessionOf(request);
  const [user, sessions] = await Promise.all([
    findUser(database, viewer.userId),
    sessionsOf({ database }, viewer.userId),
  ]);
  if (user === null) throw pageNotFound();
  const body = html`${detailList([
    ['E-mail address', user.email],
    ['Role', user.role],
  ])}
<h2>Sessions</h2>
${sessionTable(viewer, sessions, id, new Date(now()))}
<h2>Password</h2>
${user.hasPassword ? passwordForm(viewer, error) : html`<p>You sign in with your identity provider and have no password here.</p>`}`;
  const notice = noticeAfter(done, DONE);
  const view = { title: user.name || user.email, viewer, active: 'account', notice, body };
  return sendPage(reply, view, error === null ? 200 : 422);
}

function sessionTable(viewer: Viewer, sessions: readonly SessionSummary[], ownId: string, now: Date): Markup {
  const columns = ['Browser', 'Address', 'Signed in', 'Last used', ''].map((label) => ({ label }));
  return dataTable(
    'Where you are signed in',
    columns,
    sessions.map((session) => [
      html`<span class="break">${session.userAgent ?? 'unknown'}</span>`,
      session.ip ?? '–',
      exactTime(session.createdAt),
      timeAgo(session.lastSeenAt, now),
      session.id === ownId
        ? badge('good', 'this one')
        : actionButton(viewer, `/portal/account/sessions/${session.id}/end`, 'End'),
    ]),
  );
}

function passwordForm(viewer: Viewer, error: AccountError | null): Markup {
  const about = (field: string) => {
    if (error === null) return null;
    return (error.param ?? 'current') === field ? error.message : null;
  };
  return postForm(
    viewer,
    '/portal/account/password',
    html`${textField({ label: 'Present password', name: 'current', type: 'password', autocomplete: 'current-password', required: true, error: about('current') })}
${textField({ label: 'New password', name: 'password', type: 'password', autocomplete: 'new-password', required: true, maxLength: 256, hint: 'At least 12 characters; several words make a good one. All your other sessions end.', error: about('password') })}
<div class="buttons"><button class="primary">Change the password</button></div>`,
  );
}
