import { endOwnSessions } from '../../../features/users/session-list.ts';
import { changePassword } from '../../../features/users/sign-in.ts';
import { confirmNotices, listUserNotices } from '../../../features/users/user-notices.ts';
import { listSessions } from '../../../features/users/user-sessions.ts';
import { findUser, type User } from '../../../features/users/user-store.ts';
import { accountObjectId } from '../../external/schema-kit.ts';
import { PAGES, withFreshProof, withoutFreshProof } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { sessionCookie } from '../access/session-cookie.ts';
import type { Viewer } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { actionButton, csrfField, postForm, textField } from '../components/form.ts';
import { dataTable, detailList } from '../components/table.ts';
import { formLine } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { type Form, formAction, formMarkup, type Refused } from '../kits/form-page.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup, nothing } from '../markup.ts';
import { placeName, SECOND_FACTOR } from '../navigation.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { NEW_PASSWORD, PRESENT_PASSWORD } from './person-fields.ts';
import { noticeList, sessionTable } from './session-table.ts';
import type { SignInLimit } from './sign-in-limit.ts';

const SESSIONS = '/portal/account/sessions';

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

export function accountPages(app: PortalApp, context: PortalContext, tools: AccountPageTools): void {
  const password = passwordForm(tools.limit);
  const view = async (visit: Visit, refused: Refused | null = null) =>
    await accountView(visit, tools.hasOidc, password, refused);
  viewPage(app, context, { path: '/portal/account', access: PAGES.signedIn, active: 'account', view });
  if (context.config.portal.passwordSignIn)
    formAction(app, context, {
      access: withFreshProof(PAGES.signedIn, 'code'),
      active: 'account',
      form: password,
      show: view,
    });
  sessionForms(app, context);
}

function passwordForm(limit: SignInLimit): Form<'current' | 'password', null> {
  return {
    action: '/portal/account/password',
    fields: [
      { ...PRESENT_PASSWORD, name: 'current', label: 'Current password' },
      {
        ...NEW_PASSWORD,
        label: 'New password',
        hint: `${NEW_PASSWORD.hint} All your other sessions end.`,
      },
    ],
    button: 'Change the password',
    fieldOf: ({ param }) => param ?? 'current',
    submit: async ({ request, reply, session, context, visitor, actor }, given) => {
      // At an unlocked screen no password can be guessed, and the guesses at the sign-in are not forgotten.
      const account = `user ${session.viewer.userId}`;
      await limit.count(request, account);
      const passwords = { current: given.text('current'), next: given.text('password') };
      const token = await changePassword(context, session, passwords, visitor, actor);
      await limit.succeeded(request, account);
      sessionCookie.set(reply, token);
      return '/portal/account?done=password';
    },
  };
}

function sessionForms(app: PortalApp, context: PortalContext): void {
  const access = withoutFreshProof(PAGES.signedIn, 'ending sessions is the first reply to a theft');
  action(app, context, {
    path: `${SESSIONS}/:id/end`,
    access,
    act: async ({ session, id, actor }) => {
      await endOwnSessions(context, session, id, actor);
      return '/portal/account?done=session';
    },
  });
  action(app, context, {
    path: `${SESSIONS}/end-others`,
    access,
    act: async ({ session, actor }) => {
      await endOwnSessions(context, session, null, actor);
      return '/portal/account?done=sessions';
    },
  });
  action(app, context, {
    path: '/portal/account/notices',
    access: PAGES.signedIn,
    fields: { upTo: formLine() },
    act: async ({ viewer: { userId, passwordLinkBy } }, given) => {
      if (passwordLinkBy !== null) throw pageNotFound();
      await confirmNotices(context.database, userId, accountObjectId(given.text('upTo')));
      return '/portal/account';
    },
  });
}

async function accountView(
  visit: Visit,
  hasOidc: boolean,
  password: Form<'current' | 'password', null>,
  refused: Refused | null,
): Promise<PageView> {
  const { context, viewer, now } = visit;
  const { database } = context;
  const [user, sessions, notices] = await Promise.all([
    findUser(database, viewer.userId),
    listSessions(database, viewer.userId),
    listUserNotices(database, viewer.userId),
  ]);
  if (user === null) throw pageNotFound();
  const { passwordSignIn } = context.config.portal;
  const passwordPart = user.hasPassword
    ? formMarkup(visit, password, { subject: null, refused })
    : html`<p>You sign in with your identity provider and have no password here.</p>`;
  const body = html`${detailList([['E-mail address', user.email]])}
<h2>Tenants</h2>
${placeTable(viewer)}
<h2>Sessions</h2>
${sessionTable({ viewer, path: SESSIONS, now }, sessions, visit.session.id)}
${sessions.length > 1 && html`<div class="buttons">${actionButton(viewer, `${SESSIONS}/end-others`, 'End all other sessions')}</div>`}
<h2>Second factor</h2>
<p>${viewer.proofs.totp ? badge('good', 'set up') : badge('off', 'none')} <a href="${SECOND_FACTOR}">${viewer.proofs.totp ? 'Manage it' : 'Set one up'}</a></p>
${hasOidc && passwordSignIn && identitySection(viewer, user)}
${passwordSignIn && html`<h2>Password</h2>\n${passwordPart}`}
${notices.length > 0 && html`<h2>Changes to your account</h2>${noticeList(notices)}`}`;
  return { title: user.name || user.email, done: DONE, body };
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
  const field = textField({ ...PRESENT_PASSWORD, name: 'own', label: 'Your password' });
  return html`<h2>Identity provider</h2><p>${text}</p>
${postForm(viewer, `/portal/account/identity/${action}`, html`${field}<div class="buttons"><button>${label}</button></div>`)}`;
}
