import type { FastifyReply } from 'fastify';
import { useCode } from '../../../features/users/second-factor.ts';
import { checkOwnPassword } from '../../../features/users/sign-in.ts';
import { noteProof } from '../../../features/users/user-sessions.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { csrfField, textField } from '../components/form.ts';
import { noticeBox } from '../components/notice.ts';
import { formLine } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { viewPage } from '../kits/view-page.ts';
import { Visit } from '../kits/visit.ts';
import { html, type Markup, nothing } from '../markup.ts';
import { hrefWith, localPath } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { CODE, PRESENT_PASSWORD } from '../users/person-fields.ts';
import type { SignInLimit } from '../users/sign-in-limit.ts';
import { wayBack } from './link-over.ts';
import { PAGES, wantedProof } from './page-access.ts';
import { orShown } from './page-error.ts';
import { sendPage } from './send-page.ts';
import { type Viewer, viewerOf } from './viewer.ts';

const PATH = '/portal/confirm';
const CONFIRMED = '/portal/confirmed';
const FIELD = 'proof-of-presence';

type ProofTools = { limit: SignInLimit; hasOidc: boolean };

/** The question carries the form along to the same address, so that the route has it with the proof. */
export function requireFreshProof(scope: PortalApp, context: PortalContext, tools: ProofTools): void {
  scope.addHook('preValidation', async (request, reply) => {
    const given = takeProof(request.body);
    const wanted = wantedProof(request.method, request.routeOptions.config);
    if (wanted === null || viewerOf(request).isProofFresh) return;
    if (wanted === 'code' && !viewerOf(request).proofs.totp) return;
    if (request.method !== 'POST') return reply.redirect(hrefWith(PATH, { next: request.url }), 303);
    const visit = new Visit(request, reply, context);
    if (given === '') return showQuestion(visit, tools, null);
    return await orShown<unknown>(
      () => prove(visit, tools, given),
      (error) => showQuestion(visit, tools, error),
    );
  });
  confirmPages(scope, context, tools);
}

/** /portal/confirm leads to a page that wants a fresh proof; /portal/confirmed is where the provider leads back to. */
function confirmPages(app: PortalApp, context: PortalContext, tools: ProofTools): void {
  const access = { ...PAGES.signedIn, beforeSecondFactor: true } as const;
  viewPage(app, context, {
    path: PATH,
    access,
    active: '',
    query: ['next'],
    view: (visit) => {
      const next = localPath(visit.query('next'));
      if (visit.viewer.isProofFresh) return next;
      return showQuestion(visit, tools, null, { path: PATH, fields: [['next', next]] });
    },
  });
  action(app, context, {
    path: PATH,
    access,
    fields: { next: formLine(4_096) },
    needsAll: true,
    act: async (_, given) => localPath(given.text('next')),
  });
  viewPage(app, context, {
    path: CONFIRMED,
    access,
    active: '',
    view: () => ({
      title: 'Confirmed',
      body: html`<p>Your identity provider has confirmed who you are. Close this tab, and continue in the one that you came from.</p>`,
    }),
  });
}

/** Takes the proof out of the body, so that schemas of forms need not speak of it. */
function takeProof(body: unknown): string {
  if (typeof body !== 'object' || body === null || !(FIELD in body)) return '';
  const value = body[FIELD];
  delete body[FIELD];
  return typeof value === 'string' ? value : '';
}

/** A code where the user has a second factor, otherwise the password. Throws RequestError: `wrong_code`, `wrong_password`, `password_off`, `busy`. */
async function prove(
  { request, context, session, viewer, actor }: Visit,
  { limit }: ProofTools,
  given: string,
): Promise<void> {
  const { database, accounts, config, now } = context;
  if (viewer.link !== null) throw renewedByLinkOnly();
  if (viewer.proofs.totp) {
    await limit.countCode(request, viewer);
    const tools = { database, secretBox: accounts.secretBox, now };
    await useCode(tools, session, given, actor);
    await limit.codeSucceeded(request, viewer);
  } else {
    if (!config.portal.passwordSignIn) throw passwordsOff();
    const account = `user ${viewer.userId}`;
    await limit.count(request, account);
    await checkOwnPassword(context, viewer.userId, given);
    await limit.succeeded(request, account);
  }
  await noteProof(database, session.id);
  viewer.isProofFresh = true;
}

function renewedByLinkOnly(): RequestError {
  return new RequestError(
    'link_needed',
    'Open the portal again from where you came, and then continue here.',
  );
}

function passwordsOff(): RequestError {
  return new RequestError(
    'password_off',
    'Passwords are switched off here. Sign in again at your identity provider.',
  );
}

type ProofForm = { path: string; fields: [string, string][] };

function showQuestion(
  { request, reply, viewer, context }: Visit,
  { hasOidc }: ProofTools,
  error: RequestError | null,
  form: ProofForm = { path: request.url, fields: fieldsOf(request.body) },
): FastifyReply {
  const field = proofField(viewer, context.config.portal.passwordSignIn);
  const hidden = form.fields.map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  );
  const formOf = (inner: Markup, label: string, kind: string) =>
    html`<form method="post" action="${form.path}">${csrfField(viewer)}${hidden}${inner}<div class="buttons"><button class="${kind}">${label}</button></div></form>`;
  const canAtProvider = hasOidc && viewer.proofs.identity && viewer.link === null;
  const start = hrefWith('/portal/oidc/start', { again: 'yes', next: CONFIRMED });
  const body = html`${error !== null && noticeBox({ kind: 'error', text: error.message })}
${field !== null && formOf(field, 'Continue', 'primary')}
${viewer.link !== null && viewer.link.embedOrigin === null && html`<p>${wayBack(viewer.link, '_blank')} (in a new tab), and then come back here.</p>${formOf(nothing, 'I have opened it again', 'secondary')}`}
${viewer.link !== null && viewer.link.embedOrigin !== null && html`<p>${wayBack(viewer.link)}</p>`}
${canAtProvider && html`<p>${field !== null && 'Or: '}<a href="${start}" target="_blank" rel="noopener">Sign in again at your identity provider</a> (in a new tab), and then come back here.</p>${formOf(nothing, 'I have signed in again', 'secondary')}`}
<p><a class="button" href="/portal">Cancel</a></p>`;
  const lead =
    'This needs a proof of who you are that is not older than ten minutes. What you entered is kept.';
  const view = { title: 'Confirm that it is you', lead, body };
  return sendPage(reply, view, error === null ? 403 : 422);
}

/** Null: only the provider can confirm who it is. */
function proofField({ proofs }: Viewer, passwordSignIn: boolean): Markup | null {
  if (proofs.totp) {
    const label = 'Code of your authenticator, or a recovery code';
    return textField({ ...CODE, name: FIELD, label, maxLength: 64 });
  }
  if (!proofs.password || !passwordSignIn) return null;
  return textField({ ...PRESENT_PASSWORD, name: FIELD, label: 'Your password', maxLength: 4_096 });
}

function fieldsOf(body: unknown): [string, string][] {
  if (typeof body !== 'object' || body === null) return [];
  return Object.entries(body).flatMap(([name, value]) =>
    [value].flat().flatMap((one): [string, string][] => (typeof one === 'string' ? [[name, one]] : [])),
  );
}
