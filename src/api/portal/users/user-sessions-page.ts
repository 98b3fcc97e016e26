import { confirmPassword } from '../../../features/users/password-links.ts';
import { resetSecondFactor } from '../../../features/users/second-factor.ts';
import { endSessionsUnder, sessionsUnder } from '../../../features/users/session-list.ts';
import { accountObjectId } from '../../external/schema-kit.ts';
import { PAGES, withoutFreshProof } from '../access/page-access.ts';
import { badge } from '../components/badge.ts';
import { actionButton } from '../components/form.ts';
import { detailList } from '../components/table.ts';
import { action } from '../kits/action.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { sessionTable } from './session-table.ts';
import { authorityOf, listHref, type UserPlace } from './user-places.ts';

const DONE = {
  ended: 'The session is ended. The user is told at the next sign-in.',
  'all-ended': 'The user is signed out everywhere that you administer, and is told at the next sign-in.',
  confirmed: 'The password counts as chosen by the user, who has to sign in again.',
  reset: 'The second factor is reset and all sessions are ended. The user is told at the next sign-in.',
};

export function userSessionPages(app: PortalApp, context: PortalContext, place: UserPlace): void {
  const { access, active } = place;
  const user = `${place.path}/:id`;
  const path = `${user}/sessions`;
  viewPage(app, context, {
    path,
    access,
    active,
    view: async (visit) =>
      visit.id === visit.viewer.userId ? '/portal/account' : await sessionsView(visit, place),
  });
  const button = (
    at: string,
    done: keyof typeof DONE,
    act: (visit: Visit) => Promise<unknown>,
    isEnding = false,
  ) =>
    action(app, context, {
      path: at,
      access: isEnding ? withoutFreshProof(access, 'ending sessions is the first reply to a theft') : access,
      act: async (visit) => {
        await act(visit);
        return `${visit.at(path)}?done=${done}`;
      },
    });
  const end = (visit: Visit, session: string | null) =>
    endSessionsUnder(context, authorityOf(visit), visit.id, session);
  button(`${path}/end`, 'all-ended', (visit) => end(visit, null), true);
  button(
    `${path}/:session/end`,
    'ended',
    (visit) => end(visit, accountObjectId(visit.param('session'))),
    true,
  );
  if (access !== PAGES.operator) return;
  button(`${user}/reset-second-factor`, 'reset', (visit) =>
    resetSecondFactor(context, authorityOf(visit), visit.id),
  );
  button(`${user}/confirm-password`, 'confirmed', (visit) =>
    confirmPassword(context, authorityOf(visit), visit.id),
  );
}

async function sessionsView(visit: Visit, place: UserPlace): Promise<PageView> {
  const { viewer, path, context, now } = visit;
  const { user, sessions } = await sessionsUnder(context, authorityOf(visit), visit.id);
  const isOperators = visit.tenantId === null;
  const base = visit.at(`${place.path}/:id`);
  const { passwordLinkBy } = user;
  const operatorButtons = html`${passwordLinkBy !== null && actionButton(viewer, `${base}/confirm-password`, 'Confirm the password', 'danger')}${user.hasSecondFactor && actionButton(viewer, `${base}/reset-second-factor`, 'Reset the second factor', 'danger')}`;
  const buttons = html`<div class="buttons">${sessions.length > 0 && actionButton(viewer, `${path}/end`, 'End all sessions', 'danger')}${isOperators && operatorButtons}</div>`;
  const details: [string, Markup][] = [
    ['Second factor', user.hasSecondFactor ? badge('good', 'set up') : badge('off', 'none')],
  ];
  if (passwordLinkBy !== null) {
    details.push(['Password', badge('waiting', `set through a link made by ${passwordLinkBy}`)]);
  }
  return {
    title: `Sessions of ${user.email}`,
    trail: [{ label: 'Users', href: listHref(visit, place) }],
    lead: `Where this user is signed in.${isOperators ? '' : ' Sessions in other tenants are not shown.'}`,
    done: DONE,
    body: html`${detailList(details)}
${sessionTable({ viewer, path, now }, sessions)}
${buttons}`,
  };
}
