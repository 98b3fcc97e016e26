import type { FastifyReply } from 'fastify';
import type { Invitation } from '../../../features/users/invitation-store.ts';
import { invitationsForProven, joinProven, type ProvenPerson } from '../../../features/users/oidc-sign-in.ts';
import { accountObjectId } from '../../external/schema-kit.ts';
import { PAGES } from '../access/page-access.ts';
import { PageError } from '../access/page-error.ts';
import { beginInBrowser, provenCookie } from '../access/session-cookie.ts';
import { postForm } from '../components/form.ts';
import { formLine } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { invitedAs } from './invitation-page.ts';

const PATH = '/portal/oidc/join';
const COOKIE_PLACE = 'portal|oidc proven';
const VALID_MS = 600_000;

type Proven = { person: ProvenPerson; next: string };

/** Keeps the person that the provider confirmed until the tenant to join is chosen. */
export function keepProven(reply: FastifyReply, { accounts, now }: PortalContext, proven: Proven): void {
  const kept = { ...proven, at: now() };
  provenCookie.set(reply, accounts.secretBox.seal(JSON.stringify(kept), COOKIE_PLACE));
}

/** /portal/oidc/join: a user joins a tenant by a button, never by signing in alone. */
export function oidcJoinPages(app: PortalApp, context: PortalContext): void {
  viewPage(app, context, {
    path: PATH,
    access: PAGES.open,
    active: '',
    view: async (visit) => {
      const { person, next } = provenOf(visit);
      const invitations = await invitationsForProven(context, person);
      if (invitations.length === 0) {
        provenCookie.clear(visit.reply);
        return next;
      }
      const body = html`<p>E-mail address: <strong>${person.email}</strong></p>
${postForm(visit.formToken, PATH, invitations.map(joinButton))}
<p><a href="${next}">Not now</a></p>`;
      const lead =
        'You are invited. Join only tenants that you know: the inviting user sees that you joined.';
      return { title: 'Join?', viewer: null, lead, body };
    },
  });

  action(app, context, {
    path: PATH,
    access: PAGES.open,
    fields: { invitation: formLine() },
    needsAll: true,
    act: async (visit, given) => {
      const { person } = provenOf(visit);
      const id = accountObjectId(given.text('invitation'));
      await beginInBrowser(visit, await joinProven(context, person, id, visit.visitor));
      provenCookie.clear(visit.reply);
      return '/portal';
    },
  });
}

function joinButton(invitation: Invitation) {
  return html`<div class="choice"><p>${invitedAs(invitation)}, by ${invitation.invitedBy}</p><button class="primary" name="invitation" value="${invitation.id}">Join ${invitation.businessName ?? 'as operator'}</button></div>`;
}

function provenOf({ request, context: { accounts, now } }: Visit): Proven {
  try {
    const kept = JSON.parse(accounts.secretBox.open(provenCookie.read(request) ?? '', COOKIE_PLACE));
    if (now() - kept.at > VALID_MS) throw new Error('too old');
    return kept;
  } catch {
    throw new PageError(
      400,
      'Sign in again',
      'This question was open for too long. Start again from the sign-in page.',
    );
  }
}
