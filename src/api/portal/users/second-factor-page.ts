import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { encode } from 'uqr';
import type { RequestError } from '../../../platform/request-input.ts';
import {
  enableSecondFactor,
  giveSecondFactor,
  newSecondFactor,
  recoveryCodesLeft,
  removeSecondFactor,
  renewRecoveryCodes,
} from '../../../users/second-factor.ts';
import { isSecondFactorRequired } from '../../../users/sign-in-policy.ts';
import { refuseMarkedSession } from '../../../users/user-authority.ts';
import { PAGES, withFreshProof, withoutFreshProof } from '../access/page-access.ts';
import { orShown, pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { formCookie, sessionCookie } from '../access/session-cookie.ts';
import { actorOf, sessionOf, type Viewer, viewerOf } from '../access/viewer.ts';
import { codeBlock, copyable } from '../components/copyable.ts';
import { actionButton, postForm, textField } from '../components/form.ts';
import { noticeBox } from '../components/notice.ts';
import { formLine } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { html, type Markup } from '../markup.ts';
import { localPath, SECOND_FACTOR } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import type { SignInLimit } from './sign-in-limit.ts';

const CODE_PATH = '/portal/sign-in/code';
const TRAIL = [{ label: 'Your account', href: '/portal/account' }];

/** Few authenticators read a QR code without a quiet zone. */
const QR_BORDER = 4;

/** The second step of a sign-in, and one's own second factor. */
export function secondFactorPages(app: PortalApp, context: PortalContext, limit: SignInLimit): void {
  codePages(app, context, limit);
  enrolmentPages(app, context, limit);
  const access = PAGES.signedIn;
  action(app, context, {
    ...{ path: `${SECOND_FACTOR}/recovery-codes`, access },
    act: async ({ request, reply, actor }) => {
      const codes = await renewRecoveryCodes(context, sessionOf(request), actor);
      return showRecoveryCodes(reply, codes, '/portal/account');
    },
  });
  action(app, context, {
    ...{ path: `${SECOND_FACTOR}/remove`, access },
    act: async ({ request, actor }) => {
      const session = sessionOf(request);
      if (isSecondFactorRequired(context.config.portal, session.viewer)) throw pageNotFound();
      await removeSecondFactor(context, session, actor);
      return '/portal/account?done=second-factor-off';
    },
  });
}

/** /portal/sign-in/code: the second step. */
function codePages(app: PortalApp, context: PortalContext, limit: SignInLimit): void {
  const { database, accounts, now } = context;
  const reason = 'the code is the proof';
  const config = { ...withoutFreshProof(PAGES.signedIn, reason), beforeSecondFactor: true } as const;
  const querystring = Type.Object({ next: Type.Optional(Type.String()) });
  app.get(CODE_PATH, { config, schema: { querystring } }, async (request, reply) => {
    const next = localPath(request.query.next);
    if (viewerOf(request).step !== 'code') return reply.redirect(next, 303);
    return showCodeForm(request, reply, next, null);
  });

  const body = Type.Object({ code: formLine(), next: formLine(4_096) });
  app.post(CODE_PATH, { config, schema: { body } }, async (request, reply) => {
    const session = sessionOf(request);
    const { viewer } = session;
    const next = localPath(request.body.next);
    if (viewer.step !== 'code') return reply.redirect(next, 303);
    await limit.countCode(request, viewer);
    return await orShown(
      async () => {
        const tools = { database, secretBox: accounts.secretBox, now };
        const token = await giveSecondFactor(tools, session, request.body.code, actorOf(request));
        await limit.codeSucceeded(request, viewer);
        limit.knowBrowser(request, reply, viewer.userId);
        sessionCookie.set(reply, token);
        formCookie.clear(reply);
        return reply.redirect(next, 303);
      },
      (error) => showCodeForm(request, reply, next, error),
    );
  });
}

function showCodeForm(
  request: FastifyRequest,
  reply: FastifyReply,
  next: string,
  error: RequestError | null,
): FastifyReply {
  const viewer = viewerOf(request);
  const field = textField({
    label: 'Code',
    name: 'code',
    autocomplete: 'one-time-code',
    required: true,
    maxLength: 64,
    hint: 'Six digits from your authenticator, or one of your recovery codes.',
    error: error?.message ?? null,
  });
  const body = html`<p>Signed in as <strong>${viewer.email}</strong>. One step is left.</p>
${postForm(viewer, CODE_PATH, html`<input type="hidden" name="next" value="${next}">${field}<div class="buttons"><button class="primary">Continue</button></div>`)}
<p class="hint">No authenticator and no recovery codes? An operator can reset your second factor.</p>
${actionButton(viewer, '/portal/sign-out', 'Cancel')}`;
  return sendPage(reply, { title: 'Second step', viewer: null, body }, error === null ? 200 : 422);
}

/** /portal/account/second-factor: sets one up, or shows the one that there is. */
function enrolmentPages(app: PortalApp, context: PortalContext, limit: SignInLimit): void {
  const { database, accounts, now } = context;
  const tools = { database, secretBox: accounts.secretBox, now };
  const config = { ...withFreshProof(PAGES.signedIn), beforeSecondFactor: true } as const;
  app.get(SECOND_FACTOR, { config }, async (request, reply) => {
    const viewer = viewerOf(request);
    if (viewer.step === 'code') return reply.redirect(CODE_PATH, 303);
    if (viewer.proofs.totp) return await showSecondFactor(request, reply, context);
    refuseMarkedSession(viewer);
    return showEnrolment(request, reply, context, null, null);
  });

  const body = Type.Object({ sealed: formLine(), code: formLine() });
  app.post(SECOND_FACTOR, { config, schema: { body } }, async (request, reply) => {
    const session = sessionOf(request);
    await limit.countCode(request, session.viewer);
    return await orShown(
      async () => {
        const enabled = await enableSecondFactor(tools, session, request.body, actorOf(request));
        await limit.codeSucceeded(request, session.viewer);
        sessionCookie.set(reply, enabled.token);
        return showRecoveryCodes(reply, enabled.recoveryCodes, '/portal');
      },
      (error) => {
        if (error.code !== 'wrong_code') throw error;
        return showEnrolment(request, reply, context, request.body.sealed, error);
      },
    );
  });
}

function showEnrolment(
  request: FastifyRequest,
  reply: FastifyReply,
  { accounts }: PortalContext,
  given: string | null,
  error: RequestError | null,
): FastifyReply {
  const viewer = viewerOf(request);
  const { secret, sealed, uri } = newSecondFactor(accounts, viewer, usableSeal(accounts, viewer, given));
  const isAsked = viewer.step === 'enrolment';
  const field = textField({
    label: 'Code that the app shows',
    name: 'code',
    autocomplete: 'one-time-code',
    required: true,
    maxLength: 16,
    error: error?.message ?? null,
  });
  const form = html`<input type="hidden" name="sealed" value="${sealed}">${field}<div class="buttons"><button class="primary">Set up the second factor</button></div>`;
  const body = html`${isAsked && html`<p>Signed in as <strong>${viewer.email}</strong>. This installation asks for a second factor.</p>`}
<ol class="steps"><li>Open an authenticator app (such as Aegis, Google Authenticator, 1Password) and scan this code.
${qrCode(uri)}
<p class="hint">No camera? Enter this key by hand: ${copyable((secret.match(/.{1,4}/g) ?? []).join(' '))}</p></li>
<li>Enter the code that the app shows now.${postForm(viewer, SECOND_FACTOR, form)}</li></ol>
${isAsked && actionButton(viewer, '/portal/sign-out', 'Cancel')}`;
  const place = isAsked ? { viewer: null } : { active: 'account', trail: TRAIL };
  const lead = 'With a second factor, a stolen password alone opens nothing. All your other sessions end.';
  const view = { title: 'Set up a second factor', lead, ...place, body };
  return sendPage(reply, view, error === null ? 200 : 422);
}

/** What a form brought back, if it can still be opened. */
function usableSeal(
  accounts: PortalContext['accounts'],
  viewer: Viewer,
  sealed: string | null,
): string | null {
  try {
    return sealed === null ? null : newSecondFactor(accounts, viewer, sealed).sealed;
  } catch {
    return null;
  }
}

/** Dark on white in either colour scheme: not all authenticators read it the other way round. */
function qrCode(text: string): Markup {
  const { data, size } = encode(text, { ecc: 'M', border: QR_BORDER });
  const squares = data.flatMap((row, y) => row.flatMap((dark, x) => (dark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return html`<svg class="qr" viewBox="0 0 ${size} ${size}" role="img" aria-label="QR code for the authenticator app"><path d="${squares.join('')}"></path></svg>`;
}

async function showSecondFactor(
  request: FastifyRequest,
  reply: FastifyReply,
  { database, config }: PortalContext,
): Promise<FastifyReply> {
  const viewer = viewerOf(request);
  const left = await recoveryCodesLeft(database, viewer.userId);
  const isRequired = isSecondFactorRequired(config.portal, viewer);
  const few = noticeBox({ kind: 'warning', text: 'Few recovery codes are left. Create new ones.' });
  const body = html`${left < 3 && few}<p>An authenticator app is set up. Recovery codes left: <strong>${left}</strong>.</p>
<div class="buttons">${actionButton(viewer, `${SECOND_FACTOR}/recovery-codes`, 'New recovery codes')}${!isRequired && actionButton(viewer, `${SECOND_FACTOR}/remove`, 'Switch it off', 'danger')}</div>
<p class="hint">${isRequired ? 'This installation asks for a second factor. For a new phone, ask an operator to reset it.' : 'For a new phone, switch it off and set it up again.'}</p>`;
  return sendPage(reply, { title: 'Second factor', active: 'account', trail: TRAIL, body });
}

/** The one page that shows them. */
function showRecoveryCodes(reply: FastifyReply, codes: readonly string[], next: string): FastifyReply {
  const body = html`<p>Each of these codes works once in place of the authenticator. Keep them where you keep passwords: they are not shown again.</p>
${codeBlock(codes.join('\n'), 'Recovery codes')}
<p><a class="button primary" href="${next}">I have kept them</a></p>`;
  return sendPage(reply, { title: 'Recovery codes', active: 'account', viewer: null, body });
}
