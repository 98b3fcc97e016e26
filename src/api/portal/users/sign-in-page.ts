import { emailOf } from '../../../features/mail/email-address.ts';
import { closePortalLink } from '../../../features/users/portal-links.ts';
import { signIn, signOut } from '../../../features/users/sign-in.ts';
import { PAGES, withoutFreshProof } from '../access/page-access.ts';
import { beginInBrowser, oidcCookie, provenCookie, sessionCookie } from '../access/session-cookie.ts';
import { viewerIfAny } from '../access/viewer.ts';
import { action } from '../kits/action.ts';
import { formPage } from '../kits/form-page.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import { localPath } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { EMAIL, NEXT, PRESENT_PASSWORD } from './person-fields.ts';
import type { SignInLimit } from './sign-in-limit.ts';

const PAGE = {
  path: '/portal/sign-in',
  access: PAGES.open,
  active: '',
  query: ['next'],
  done: {
    'signed-out': 'You are signed out.',
    'password-changed': 'The password is changed. Sign in with it.',
  },
  title: 'Sign in',
  viewer: null,
};

type SignInTools = { limit: SignInLimit; hasOidc: boolean };

/** What the browser keeps of the pages goes; the cookies that know it as one of the user's stay. */
const CLEAR_SITE_DATA = '"cache", "storage"';

/** What is typed must not be what guesses in a session are counted by, such as `user 5`. */
const NO_ADDRESS = 'no address';

export function signInPages(app: PortalApp, context: PortalContext, tools: SignInTools): void {
  if (context.config.portal.passwordSignIn) passwordPage(app, context, tools);
  else viewPage(app, context, { ...PAGE, view: (visit) => signedInAlready(visit) ?? oidcPage(visit, tools) });

  const access = withoutFreshProof(PAGES.signedIn, 'it ends the session itself');
  action(app, context, {
    path: '/portal/sign-out',
    access: { ...access, beforeSecondFactor: true },
    act: async ({ session, actor, reply, viewer: { link, tenantId, email } }) => {
      if (link !== null) {
        await closePortalLink({ ...context, actor }, { link, tenantId, email });
        return '/portal';
      }
      await signOut(context, session, actor);
      for (const one of [sessionCookie, oidcCookie, provenCookie]) one.clear(reply);
      reply.header('clear-site-data', CLEAR_SITE_DATA);
      return '/portal/sign-in?done=signed-out';
    },
  });
}

function passwordPage(app: PortalApp, context: PortalContext, { limit, hasOidc }: SignInTools): void {
  formPage(app, context, {
    ...PAGE,
    instead: signedInAlready,
    fields: [
      { ...NEXT, mayBeMissing: true },
      EMAIL,
      {
        ...PRESENT_PASSWORD,
        name: 'password',
        label: 'Password',
        hint: 'Forgotten? An administrator can create a link for a new one.',
      },
    ],
    values: (_, visit) => ({ next: nextOf(visit) }),
    button: 'Sign in',
    below: (_, visit) => hasOidc && html`<hr>${oidcLink(visit, '')}`,
    fieldOf: () => null,
    submit: async (visit, given) => {
      const { request, reply, visitor } = visit;
      const account = emailOf(given.text('email')) ?? NO_ADDRESS;
      const known = await limit.countSignIn(request, account);
      const inBackground = (work: Promise<void>) =>
        void work.catch((err: unknown) =>
          request.log.error({ err }, 'a failed sign-in is missing in the audit log'),
        );
      const sent = { email: given.text('email'), password: given.text('password'), ...known };
      const { token, ...signedIn } = await signIn({ ...context, inBackground }, sent, visitor);
      // An owner of one account of an address must not get more guesses for another by signing in to the first.
      await limit.signedIn(request, signedIn.userId, signedIn.isOnlyAccount ? account : null);
      // Who has the password alone must not become known: codes would be counted for them apart.
      if (!signedIn.awaitsCode) limit.knowBrowser(request, reply, signedIn.userId);
      await beginInBrowser(visit, token);
      return signedIn.opened > 1 ? '/portal/account?done=several' : nextOf(visit);
    },
  });
}

function nextOf(visit: Visit): string {
  return localPath(visit.carried('next'));
}

function signedInAlready(visit: Visit): string | null {
  return viewerIfAny(visit.request) === null ? null : nextOf(visit);
}

function oidcPage(visit: Visit, { hasOidc }: SignInTools) {
  return { ...PAGE, body: hasOidc && oidcLink(visit, 'primary') };
}

function oidcLink(visit: Visit, look: string): Markup {
  return html`<p><a class="button ${look}" href="/portal/oidc/start?next=${encodeURIComponent(nextOf(visit))}">Sign in with your identity provider</a></p>`;
}
