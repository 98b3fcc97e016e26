import type { Invitation } from '../../../features/users/invitation-store.ts';
import {
  acceptInvitation,
  invitationBehind,
  joinWithAccount,
  unknownInvitation,
} from '../../../features/users/invitations.ts';
import { setPasswordByLink } from '../../../features/users/password-links.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import { PageError, pageNotFound } from '../access/page-error.ts';
import { beginInBrowser, sessionCookie } from '../access/session-cookie.ts';
import { type Viewer, viewerIfAny } from '../access/viewer.ts';
import { actionButton } from '../components/form.ts';
import { type Form, formAction, formMarkup, type Refused, unplaced } from '../kits/form-page.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { NAME, NEW_PASSWORD } from './person-fields.ts';
import type { SignInLimit } from './sign-in-limit.ts';

const PATH = '/portal/invitations/:token';

type LinkTools = { limit: SignInLimit; hasOidc: boolean };
type LinkForm = Form<'name' | 'password', Invitation>;

/** /portal/invitations/:token: a link shows a form, and only the form uses the link up. */
export function invitationPages(app: PortalApp, context: PortalContext, tools: LinkTools): void {
  const submit: LinkForm['submit'] = async (visit, given, invitation) =>
    await orClosed(() => useLink(visit, tools, invitation, given));
  const forms = { newAccount: { ...NEW_ACCOUNT, submit }, newPassword: { ...A_NEW_PASSWORD, submit } };
  viewPage(app, context, {
    path: PATH,
    access: PAGES.open,
    active: '',
    view: async (visit) => linkView(visit, tools, forms, { subject: await linkBehind(visit), refused: null }),
  });
  formAction(app, context, {
    access: PAGES.open,
    form: forms.newAccount,
    load: linkBehind,
    show: (visit, refused, subject) => linkView(visit, tools, forms, { subject, refused }),
  });
}

const NEW_ACCOUNT = {
  action: PATH,
  fields: [
    { ...NAME, mayBeMissing: true },
    { ...NEW_PASSWORD, label: 'Password', mayBeMissing: true },
  ],
  button: 'Create the account',
};

const A_NEW_PASSWORD = {
  action: PATH,
  fields: [{ ...NEW_PASSWORD, label: 'New password' }],
  button: 'Set the password',
};

/** Links to a new password are closed where none can be used. */
async function linkBehind(visit: Visit): Promise<Invitation> {
  return await orClosed(async () => {
    const invitation = await invitationBehind(visit.context, visit.param('token'));
    if (invitation.userId !== null && !visit.context.config.portal.passwordSignIn) throw unknownInvitation();
    return invitation;
  });
}

async function useLink(
  visit: Visit,
  { limit }: LinkTools,
  invitation: Invitation,
  given: Parameters<LinkForm['submit']>[1],
): Promise<string> {
  const { request, reply, context, visitor } = visit;
  if (invitation.userId !== null) {
    await setPasswordByLink(context, invitation, given.text('password'), visitor);
    sessionCookie.clear(reply);
    return '/portal/sign-in?done=password-changed';
  }
  if (viewerIfAny(request) !== null) {
    await beginInBrowser(visit, await joinWithAccount(context, invitation, visit.session, visitor));
    return '/portal';
  }
  if (!context.config.portal.passwordSignIn) throw pageNotFound();
  // A password that opens an account of this address joins with it, so each is a guess, whatever comes of it.
  await limit.count(request, `invitation of ${invitation.email}`);
  const person = { name: given.text('name'), password: given.text('password') };
  const token = await acceptInvitation(context, invitation, person, visitor);
  await limit.succeeded(request, null);
  await beginInBrowser(visit, token);
  return '/portal';
}

type Shown = { subject: Invitation; refused: Refused | null };

function linkView(
  visit: Visit,
  { hasOidc }: LinkTools,
  { newAccount, newPassword }: Record<'newAccount' | 'newPassword', LinkForm>,
  shown: Shown,
): PageView {
  const { subject: invitation, refused } = shown;
  const address = html`<p>E-mail address: <strong>${invitation.email}</strong></p>`;
  const form = invitation.userId === null ? newAccount : newPassword;
  const view = { viewer: null, notice: unplaced(form, invitation, refused) };
  if (invitation.userId !== null) {
    const lead = 'Choose a new password, and sign in with it. All sessions of this account end.';
    const body = html`${address}${formMarkup(visit, newPassword, shown)}`;
    return { ...view, title: 'New password', lead, body };
  }
  const viewer = viewerIfAny(visit.request);
  const ofVisitor = () => html`${accountHint(visit, hasOidc)}${formMarkup(visit, newAccount, shown)}`;
  const { passwordSignIn } = visit.context.config.portal;
  const way =
    viewer === null
      ? passwordSignIn
        ? ofVisitor()
        : AT_PROVIDER
      : withAccount(viewer, visit.path, invitation);
  const lead = `You are invited as ${invitedAs(invitation)}.`;
  return { ...view, title: 'Welcome', lead, body: html`${address}${way}` };
}

const AT_PROVIDER = html`<p>Sign in with your identity provider as the person with this address. You are asked there whether to join.</p>
<p><a class="button primary" href="/portal/oidc/start">Sign in with your identity provider</a></p>`;

/** The same whether the address has an account or not: the link proves nothing about whose the address is. */
function accountHint({ path }: Visit, hasOidc: boolean): Markup {
  return html`<p class="hint">If you have an account with this address already, <a href="/portal/sign-in?next=${encodeURIComponent(path)}">sign in</a> first to join with it${hasOidc && html`, or <a href="/portal/oidc/start">sign in with your identity provider</a>`}.</p>`;
}

function withAccount(viewer: Viewer, path: string, { email }: Invitation): Markup {
  if (viewer.email !== email) {
    return html`<p>You are signed in as <strong>${viewer.email}</strong>. Sign out, and open the link again.</p>${actionButton(viewer, '/portal/sign-out', 'Sign out')}`;
  }
  return html`<p>You are signed in as ${viewer.name || viewer.email}. You join with this account, and can go from one tenant to another at the top of each page.</p>
<div class="buttons">${actionButton(viewer, path, 'Join', 'primary')}<a class="button" href="/portal">Not now</a></div>`;
}

/** As it reads after "invited as": "a member of Fixture Store". */
export function invitedAs({ role, businessName }: Pick<Invitation, 'role' | 'businessName'>): string {
  const rights = { operator: 'an operator', admin: 'an administrator', member: 'a member' };
  return `${rights[role ?? 'member']} of ${businessName ?? 'this installation'}`;
}

/** One page for links that were used, withdrawn, are too old, or never were. */
async function orClosed<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof RequestError) || error.code !== 'unknown_invitation') throw error;
    throw new PageError(404, 'This link does not work', `${error.message} Ask for a new one, or sign in.`);
  }
}
