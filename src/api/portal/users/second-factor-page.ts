import { encode } from 'uqr';
import {
  enableSecondFactor,
  giveSecondFactor,
  type NewSecondFactor,
  newSecondFactor,
  recoveryCodesLeft,
  removeSecondFactor,
  renewRecoveryCodes,
} from '../../../features/users/second-factor.ts';
import { isSecondFactorRequired } from '../../../features/users/sign-in-policy.ts';
import { refuseMarkedSession } from '../../../features/users/user-authority.ts';
import { PAGES, withFreshProof, withoutFreshProof } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { formCookie, sessionCookie } from '../access/session-cookie.ts';
import type { Viewer } from '../access/viewer.ts';
import { codeBlock, copyable } from '../components/copyable.ts';
import { actionButton } from '../components/form.ts';
import { noticeBox } from '../components/notice.ts';
import { action } from '../kits/action.ts';
import { type Form, formAction, formMarkup, formPage, type Refused } from '../kits/form-page.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import { localPath, SECOND_FACTOR } from '../navigation.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { CODE, NEXT } from './person-fields.ts';
import type { SignInLimit } from './sign-in-limit.ts';

const CODE_PATH = '/portal/sign-in/code';
const TRAIL = [{ label: 'Your account', href: '/portal/account' }];

/** Few authenticators read a QR code without a quiet zone. */
const QR_BORDER = 4;

export function secondFactorPages(app: PortalApp, context: PortalContext, limit: SignInLimit): void {
  codePage(app, context, limit);
  enrolmentPage(app, context, limit);
  const access = PAGES.signedIn;
  action(app, context, {
    path: `${SECOND_FACTOR}/recovery-codes`,
    access,
    act: async ({ session, actor }) =>
      recoveryCodesView(await renewRecoveryCodes(context, session, actor), '/portal/account'),
  });
  action(app, context, {
    path: `${SECOND_FACTOR}/remove`,
    access,
    act: async ({ session, actor }) => {
      if (isSecondFactorRequired(context.config.portal, session.viewer)) throw pageNotFound();
      await removeSecondFactor(context, session, actor);
      return '/portal/account?done=second-factor-off';
    },
  });
}

function codePage(app: PortalApp, context: PortalContext, limit: SignInLimit): void {
  const { database, accounts, now } = context;
  const access = withoutFreshProof(PAGES.signedIn, 'the code is the proof');
  formPage(app, context, {
    path: CODE_PATH,
    access: { ...access, beforeSecondFactor: true },
    active: '',
    query: ['next'],
    title: 'Second step',
    viewer: null,
    instead: (visit) => (visit.viewer.step === 'code' ? null : localPath(visit.query('next'))),
    above: (_, { viewer }) => html`<p>Signed in as <strong>${viewer.email}</strong>. One step is left.</p>`,
    fields: [
      NEXT,
      {
        ...CODE,
        label: 'Code',
        maxLength: 64,
        hint: 'Six digits from your authenticator, or one of your recovery codes.',
      },
    ],
    values: (_, visit) => ({ next: localPath(visit.carried('next')) }),
    button: 'Continue',
    fieldOf: () => CODE.name,
    below: (_, { viewer }) => html`
<p class="hint">No authenticator and no recovery codes? An operator can reset your second factor.</p>
${actionButton(viewer, '/portal/sign-out', 'Cancel')}`,
    submit: async ({ request, reply, session, actor, viewer }, given) => {
      const next = localPath(given.text('next'));
      if (viewer.step !== 'code') return next;
      await limit.countCode(request, viewer);
      const tools = { database, secretBox: accounts.secretBox, now };
      const token = await giveSecondFactor(tools, session, given.text('code'), actor);
      await limit.codeSucceeded(request, viewer);
      limit.knowBrowser(request, reply, viewer.userId);
      sessionCookie.set(reply, token);
      formCookie.clear(reply);
      return next;
    },
  });
}

function enrolmentPage(app: PortalApp, context: PortalContext, limit: SignInLimit): void {
  const { database, accounts, now } = context;
  const access = { ...withFreshProof(PAGES.signedIn), beforeSecondFactor: true } as const;
  const form: Form<'sealed' | 'code', NewSecondFactor> = {
    action: SECOND_FACTOR,
    fields: [
      { name: 'sealed', label: '', widget: 'hidden' },
      { ...CODE, label: 'Code that the app shows', maxLength: 16 },
    ],
    values: ({ sealed }) => ({ sealed }),
    button: 'Set up the second factor',
    fieldOf: () => CODE.name,
    submit: async ({ request, reply, session, actor }, given) => {
      await limit.countCode(request, session.viewer);
      const tools = { database, secretBox: accounts.secretBox, now };
      const sent = { sealed: given.text('sealed'), code: given.text('code') };
      const enabled = await enableSecondFactor(tools, session, sent, actor);
      await limit.codeSucceeded(request, session.viewer);
      sessionCookie.set(reply, enabled.token);
      return recoveryCodesView(enabled.recoveryCodes, '/portal');
    },
  };
  viewPage(app, context, {
    path: SECOND_FACTOR,
    access,
    active: 'account',
    view: async (visit) => {
      const { viewer } = visit;
      if (viewer.step === 'code') return CODE_PATH;
      if (viewer.proofs.totp) return await secondFactorView(visit);
      refuseMarkedSession(viewer);
      return enrolmentView(visit, form, newSecondFactor(accounts, viewer, null));
    },
  });
  formAction(app, context, {
    access,
    active: 'account',
    form,
    load: async (visit) => {
      const sealed = usableSeal(accounts, visit.viewer, visit.carried('sealed'));
      return newSecondFactor(accounts, visit.viewer, sealed);
    },
    show: (visit, refused, subject) => {
      if (refused.error.code !== 'wrong_code') throw refused.error;
      return enrolmentView(visit, form, subject, refused);
    },
  });
}

function enrolmentView(
  visit: Visit,
  form: Form<'sealed' | 'code', NewSecondFactor>,
  subject: NewSecondFactor,
  refused: Refused | null = null,
): PageView {
  const { viewer } = visit;
  const isAsked = viewer.step === 'enrolment';
  const key = (subject.secret.match(/.{1,4}/g) ?? []).join(' ');
  return {
    title: 'Set up a second factor',
    lead: 'With a second factor, a stolen password alone opens nothing. All your other sessions end.',
    ...(isAsked ? { viewer: null } : { trail: TRAIL }),
    body: html`${isAsked && html`<p>Signed in as <strong>${viewer.email}</strong>. This installation asks for a second factor.</p>`}
<ol class="steps"><li>Open an authenticator app (such as Aegis, Google Authenticator, 1Password) and scan this code.
${qrCode(subject.uri)}
<p class="hint">No camera? Enter this key by hand: ${copyable(key)}</p></li>
<li>Enter the code that the app shows now.${formMarkup(visit, form, { subject, refused })}</li></ol>
${isAsked && actionButton(viewer, '/portal/sign-out', 'Cancel')}`,
  };
}

function usableSeal(accounts: PortalContext['accounts'], viewer: Viewer, sealed: string): string | null {
  try {
    return newSecondFactor(accounts, viewer, sealed).sealed;
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

async function secondFactorView({ viewer, context: { database, config } }: Visit): Promise<PageView> {
  const left = await recoveryCodesLeft(database, viewer.userId);
  const isRequired = isSecondFactorRequired(config.portal, viewer);
  const few = noticeBox({ kind: 'warning', text: 'Few recovery codes are left. Create new ones.' });
  const body = html`${left < 3 && few}<p>An authenticator app is set up. Recovery codes left: <strong>${left}</strong>.</p>
<div class="buttons">${actionButton(viewer, `${SECOND_FACTOR}/recovery-codes`, 'New recovery codes')}${!isRequired && actionButton(viewer, `${SECOND_FACTOR}/remove`, 'Switch it off', 'danger')}</div>
<p class="hint">${isRequired ? 'This installation asks for a second factor. For a new phone, ask an operator to reset it.' : 'For a new phone, switch it off and set it up again.'}</p>`;
  return { title: 'Second factor', trail: TRAIL, body };
}

function recoveryCodesView(codes: readonly string[], next: string): PageView {
  const body = html`<p>Each of these codes works once in place of the authenticator. Keep them where you keep passwords: they are not shown again.</p>
${codeBlock(codes.join('\n'), 'Recovery codes')}
<p><a class="button primary" href="${next}">I have kept them</a></p>`;
  return { title: 'Recovery codes', viewer: null, body };
}
