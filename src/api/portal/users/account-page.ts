import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { RequestError } from '../../../platform/request-input.ts';
import { changePassword } from '../../../users/sign-in.ts';
import { endSession, type SessionSummary, sessionsOf } from '../../../users/user-sessions.ts';
import { findUser, type User } from '../../../users/user-store.ts';
import { accountObjectId } from '../../external/schema-kit.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown, pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { sessionCookie } from '../access/session-cookie.ts';
import { actorOf, sessionOf, type Viewer, viewerOf, visitorOf } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { actionButton, csrfField, postForm, textField } from '../components/form.ts';
import { dataTable, detailList } from '../components/table.ts';
import { exactTime, timeAgo } from '../components/time.ts';
import { EMPTY_FORM, formLine } from '../form-values.ts';
import { html, type Markup, nothing } from '../markup.ts';
import { placeName } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import type { SignInLimit } from './sign-in-limit.ts';

const DONE = {
  password: 'Your password is changed. All your other sessions are ended.',
  session: 'The session is ended.',
  several:
    'Your password opens several accounts with your address, and this is the one used last. Change its password to reach the others.',
  linked: 'You can sign in with your identity provider from now on.',
  unlinked: 'Your identity provider no longer signs you in to this account.',
};

type AccountPageTools = { limit: SignInLimit; hasOidc: boolean };

/** /portal/account: one's own tenants, sessions, identity provider and password. */
export function accountPages(app: PortalApp, context: PortalContext, tools: AccountPageTools): void {
  const { database } = context;
  app.get('/portal/account', { config: PAGES.signedIn }, async (request, reply) =>
    showAccount(request, reply, context, tools, null),
  );

  const body = Type.Object({ current: formLine(4_096), password: formLine(4_096) });
  app.post(
    '/portal/account/password',
    { config: PAGES.signedIn, schema: { body } },
    async (request, reply) => {
      const session = sessionOf(request);
      const { current, password: next } = request.body;
      // At an unlocked screen no password can be guessed, and the guesses at the sign-in are not forgotten.
      const account = `user ${session.viewer.userId}`;
      await tools.limit.count(request, account);
      return await orShown(
        async () => {
          const given = { current, next };
          const actor = actorOf(request);
          const token = await changePassword({ database }, session, given, visitorOf(request), actor);
          await tools.limit.succeeded(request, account);
          sessionCookie.set(reply, token);
          return reply.redirect('/portal/account?done=password', 303);
        },
        (error) => showAccount(request, reply, context, tools, error),
      );
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
  { hasOidc }: AccountPageTools,
  error: RequestError | null,
): Promise<FastifyReply> {
  const { id, viewer } = sessionOf(request);
  const [user, sessions] = await Promise.all([
    findUser(database, viewer.userId),
    sessionsOf({ database }, viewer.userId),
  ]);
  if (user === null) throw pageNotFound();
  const body = html`${detailList([['E-mail address', user.email]])}
<h2>Tenants</h2>
${placeTable(viewer)}
<h2>Sessions</h2>
${sessionTable(viewer, sessions, id, new Date(now()))}
${hasOidc && identitySection(viewer, user)}
<h2>Password</h2>
${user.hasPassword ? passwordForm(viewer, error) : html`<p>You sign in with your identity provider and have no password here.</p>`}`;
  const view = { title: user.name || user.email, active: 'account', done: DONE, body };
  return sendPage(reply, view, error === null ? 200 : 422);
}

function placeTable(viewer: Viewer): Markup {
  return dataTable(
    'Tenants',
    ['Tenant', 'Role', ''],
    viewer.places.map((place) => [
      placeName(place),
      place.role,
      place.tenantId === viewer.tenantId ? badge('good', 'current') : goTo(viewer, place.tenantId ?? ''),
    ]),
  );
}

function goTo(viewer: Viewer, tenantId: string): Markup {
  return html`<form method="post" action="/portal/tenant" class="inline">${csrfField(viewer)}<button class="secondary" name="tenant" value="${tenantId}">Switch</button></form>`;
}

function sessionTable(viewer: Viewer, sessions: readonly SessionSummary[], ownId: string, now: Date): Markup {
  const columns = ['Browser', 'Address', 'Signed in', 'Last used', ''];
  return dataTable(
    'Sessions',
    columns,
    sessions.map((session) => [
      html`<span class="break">${session.userAgent ?? 'unknown'}</span>`,
      session.ip ?? '–',
      exactTime(session.createdAt),
      timeAgo(session.lastSeenAt, now),
      session.id === ownId
        ? badge('good', 'this session')
        : actionButton(viewer, `/portal/account/sessions/${session.id}/end`, 'End'),
    ]),
  );
}

function identitySection(viewer: Viewer, { identities, hasPassword }: User): Markup {
  if (!hasPassword) return nothing;
  const [action, text, label] =
    identities > 0
      ? ['unlink', 'You can sign in to this account with your identity provider.', 'Disconnect it']
      : [
          'link',
          'With your password, you can make your identity provider sign you in to this account.',
          'Connect it',
        ];
  const field = textField({
    label: 'Your password',
    name: 'own',
    type: 'password',
    autocomplete: 'current-password',
    required: true,
  });
  return html`<h2>Identity provider</h2><p>${text}</p>
${postForm(viewer, `/portal/account/identity/${action}`, html`${field}<div class="buttons"><button>${label}</button></div>`)}`;
}

function passwordForm(viewer: Viewer, error: RequestError | null): Markup {
  const about = (field: string) => {
    if (error === null) return null;
    return (error.param ?? 'current') === field ? error.message : null;
  };
  return postForm(
    viewer,
    '/portal/account/password',
    html`${textField({ label: 'Current password', name: 'current', type: 'password', autocomplete: 'current-password', required: true, error: about('current') })}
${textField({ label: 'New password', name: 'password', type: 'password', autocomplete: 'new-password', required: true, maxLength: 256, hint: 'At least 12 characters; several words make a good one. All your other sessions end.', error: about('password') })}
<div class="buttons"><button class="primary">Change the password</button></div>`,
  );
}
