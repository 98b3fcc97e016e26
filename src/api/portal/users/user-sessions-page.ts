import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { confirmPassword } from '../../../users/password-links.ts';
import { resetSecondFactor } from '../../../users/second-factor.ts';
import { endSessionsUnder, sessionsUnder } from '../../../users/session-list.ts';
import { accountObjectId } from '../../external/schema-kit.ts';
import { PAGES, withoutFreshProof } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { viewerOf } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { actionButton } from '../components/form.ts';
import { detailList } from '../components/table.ts';
import { EMPTY_FORM } from '../form-values.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { sessionTable } from './session-table.ts';
import type { UserPlace } from './user-actions.ts';

const DONE = {
  ended: 'The session is ended. The user is told at the next sign-in.',
  'all-ended': 'The user is signed out everywhere that you administer, and is told at the next sign-in.',
  confirmed: 'The password counts as chosen by the user, who has to sign in again.',
  reset: 'The second factor is reset and all sessions are ended. The user is told at the next sign-in.',
};

/** …/users/:id/sessions: where a user is signed in, for those who administer the user. */
export function userSessionPages(app: PortalApp, context: PortalContext, place: UserPlace): void {
  const { database } = context;
  const { config, querystring, authorityOf } = place;
  const route = `${place.route}/:id/sessions`;
  const params = Type.Object({ id: Type.String() });
  app.get(route, { config, schema: { params, querystring } }, async (request, reply) => {
    const id = accountObjectId(request.params.id);
    if (id === viewerOf(request).userId) return reply.redirect('/portal/account', 303);
    return await showSessions(request, reply, context, place, id);
  });

  const schema = { params, querystring, body: EMPTY_FORM };
  const ending = withoutFreshProof(config, 'ending sessions is the first reply to a theft');
  app.post(`${route}/end`, { config: ending, schema }, async (request, reply) => {
    const id = accountObjectId(request.params.id);
    await endSessionsUnder({ database }, authorityOf(request), id, null);
    return reply.redirect(place.sessionsHref(request, id, 'all-ended'), 303);
  });
  const withSession = Type.Object({ id: Type.String(), session: Type.String() });
  const one = { config: ending, schema: { params: withSession, querystring, body: EMPTY_FORM } };
  app.post(`${route}/:session/end`, one, async (request, reply) => {
    const [id, session] = [accountObjectId(request.params.id), accountObjectId(request.params.session)];
    await endSessionsUnder({ database }, authorityOf(request), id, session);
    return reply.redirect(place.sessionsHref(request, id, 'ended'), 303);
  });
  if (config !== PAGES.operator) return;
  const options = { config: PAGES.operator, schema };
  app.post(`${place.route}/:id/reset-second-factor`, options, async (request, reply) => {
    const id = accountObjectId(request.params.id);
    await resetSecondFactor({ database }, authorityOf(request), id);
    return reply.redirect(place.sessionsHref(request, id, 'reset'), 303);
  });
  app.post(`${place.route}/:id/confirm-password`, options, async (request, reply) => {
    const id = accountObjectId(request.params.id);
    await confirmPassword({ database }, authorityOf(request), id);
    return reply.redirect(place.sessionsHref(request, id, 'confirmed'), 303);
  });
}

async function showSessions(
  request: FastifyRequest,
  reply: FastifyReply,
  { database, now }: PortalContext,
  place: UserPlace,
  id: string,
): Promise<FastifyReply> {
  const viewer = viewerOf(request);
  const authority = place.authorityOf(request);
  const { user, sessions } = await sessionsUnder({ database }, authority, id);
  const path = place.sessionsHref(request, id);
  const isOperators = authority.tenantId === null;
  const base = path.replace(/\/sessions$/, '');
  const { passwordLinkBy } = user;
  const operatorButtons = html`${passwordLinkBy !== null && actionButton(viewer, `${base}/confirm-password`, 'Confirm the password', 'danger')}${user.hasSecondFactor && actionButton(viewer, `${base}/reset-second-factor`, 'Reset the second factor', 'danger')}`;
  const buttons = html`<div class="buttons">${sessions.length > 0 && actionButton(viewer, `${path}/end`, 'End all sessions', 'danger')}${isOperators && operatorButtons}</div>`;
  const details: [string, Markup][] = [['Second factor', secondFactor(user.hasSecondFactor)]];
  if (passwordLinkBy !== null) {
    details.push(['Password', badge('waiting', `set through a link made by ${passwordLinkBy}`)]);
  }
  return sendPage(reply, {
    title: `Sessions of ${user.email}`,
    active: place.active,
    trail: [{ label: 'Users', href: place.listHref(request) }],
    lead: `Where this user is signed in.${isOperators ? '' : ' Sessions in other tenants are not shown.'}`,
    done: DONE,
    body: html`${detailList(details)}
${sessionTable({ viewer, path, now: new Date(now()) }, sessions)}
${buttons}`,
  });
}

function secondFactor(isSet: boolean): Markup {
  return isSet ? badge('good', 'set up') : badge('off', 'none');
}
