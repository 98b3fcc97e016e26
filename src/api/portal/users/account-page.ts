import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { RequestError } from '../../../platform/request-input.ts';
import { endOwnSessions, sessionsOf } from '../../../users/session-list.ts';
import { changePassword } from '../../../users/sign-in.ts';
import { confirmNotices, listUserNotices, type UserNotice } from '../../../users/user-notices.ts';
import { findUser, type User } from '../../../users/user-store.ts';
import { accountObjectId } from '../../external/schema-kit.ts';
import { PAGES, withFreshProof, withoutFreshProof } from '../access/page-access.ts';
import { orShown, pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { sessionCookie } from '../access/session-cookie.ts';
import { actorOf, sessionOf, type Viewer, visitorOf } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { actionButton, csrfField, postForm, textField } from '../components/form.ts';
import { dataTable, detailList } from '../components/table.ts';
import { formLine } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { html, type Markup, nothing } from '../markup.ts';
import { placeName, SECOND_FACTOR } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { noticeText, sessionTable } from './session-table.ts';
import type { SignInLimit } from './sign-in-limit.ts';

const DONE = {
  password: 'Your password is changed. All your other sessions are ended.',
  session: 'The session is ended.',
  sessions: 'All your other sessions are ended.',
  'second-factor-off': 'Your second factor is switched off.',
  several:
    'Your password opens several accounts with your address, and this is the one used last. Change its password to reach the others.',
  linked: 'You can sign in with your identity provider from now on.',
  unlinked: 'Your identity provider no longer signs you in to this account.',
};

type AccountPageTools = { limit: SignInLimit; hasOidc: boolean };

/** /portal/account: one's own tenants, sessions, identity provider and password. */
export function accountPages(app: PortalApp, context: PortalContext, tools: AccountPageTools): void {
  app.get('/portal/account', { config: PAGES.signedIn }, async (request, reply) =>
    showAccount(request, reply, context, tools, null),
  );

  if (context.config.portal.passwordSignIn) passwordChange(app, context, tools);
  sessionForms(app, context);
}

function passwordChange(app: PortalApp, context: PortalContext, tools: AccountPageTools): void {
  const { database } = context;
  const body = Type.Object({ current: formLine(4_096), password: formLine(4_096) });
  app.post(
    '/portal/account/password',
    { config: withFreshProof(PAGES.signedIn, 'code'), schema: { body } },
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
}

function sessionForms(app: PortalApp, context: PortalContext): void {
  const { database } = context;
  const access = withoutFreshProof(PAGES.signedIn, 'ending sessions is the first reply to a theft');
  action(app, context, {
    ...{ path: '/portal/account/sessions/:id/end', access },
    act: async ({ request, id, actor }) => {
      await endOwnSessions({ database }, sessionOf(request), id, actor);
      return '/portal/account?done=session';
    },
  });
  action(app, context, {
    ...{ path: '/portal/account/sessions/end-others', access },
    act: async ({ request, actor }) => {
      await endOwnSessions({ database }, sessionOf(request), null, actor);
      return '/portal/account?done=sessions';
    },
  });
  action(app, context, {
    ...{ path: '/portal/account/notices', access: PAGES.signedIn, fields: { upTo: formLine() } },
    act: async ({ viewer: { userId, passwordLinkBy } }, given) => {
      if (passwordLinkBy !== null) throw pageNotFound();
      await confirmNotices(database, userId, accountObjectId(given.text('upTo')));
      return '/portal/account';
    },
  });
}

async function showAccount(
  request: FastifyRequest,
  reply: FastifyReply,
  { database, now, config }: PortalContext,
  { hasOidc }: AccountPageTools,
  error: RequestError | null,
): Promise<FastifyReply> {
  const { id, viewer } = sessionOf(request);
  const [user, sessions, notices] = await Promise.all([
    findUser(database, viewer.userId),
    sessionsOf({ database }, viewer.userId),
    listUserNotices(database, viewer.userId),
  ]);
  const { passwordSignIn } = config.portal;
  const place = { viewer, path: '/portal/account/sessions', now: new Date(now()) };
  if (user === null) throw pageNotFound();
  const body = html`${detailList([['E-mail address', user.email]])}
<h2>Tenants</h2>
${placeTable(viewer)}
<h2>Sessions</h2>
${sessionTable(place, sessions, id)}
${sessions.length > 1 && html`<div class="buttons">${actionButton(viewer, '/portal/account/sessions/end-others', 'End all other sessions')}</div>`}
<h2>Second factor</h2>
<p>${viewer.proofs.totp ? badge('good', 'set up') : badge('off', 'none')} <a href="${SECOND_FACTOR}">${viewer.proofs.totp ? 'Manage it' : 'Set one up'}</a></p>
${hasOidc && passwordSignIn && identitySection(viewer, user)}
${passwordSignIn && passwordSection(viewer, user, error)}
${noticeSection(notices)}`;
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

function passwordSection(viewer: Viewer, user: User, error: RequestError | null): Markup {
  return html`<h2>Password</h2>
${user.hasPassword ? passwordForm(viewer, error) : html`<p>You sign in with your identity provider and have no password here.</p>`}`;
}

/** Changes that the owner should know of, those that the owner has confirmed included. */
function noticeSection(notices: readonly UserNotice[]): Markup {
  if (notices.length === 0) return nothing;
  return html`<h2>Changes to your account</h2><ul>${notices.map((notice) => html`<li>${noticeText(notice)}</li>`)}</ul>`;
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
