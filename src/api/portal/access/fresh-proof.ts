import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { RequestError } from '../../../platform/request-input.ts';
import { useCode } from '../../../users/second-factor.ts';
import { checkOwnPassword } from '../../../users/sign-in.ts';
import { noteProof } from '../../../users/user-sessions.ts';
import { csrfField, textField } from '../components/form.ts';
import { noticeBox } from '../components/notice.ts';
import { formLine } from '../form-values.ts';
import { html, type Markup, nothing } from '../markup.ts';
import { hrefWith, localPath } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import type { SignInLimit } from '../users/sign-in-limit.ts';
import { PAGES, wantedProof } from './page-access.ts';
import { sendPage } from './send-page.ts';
import { actorOf, sessionOf, type Viewer, viewerOf } from './viewer.ts';

const PATH = '/portal/confirm';
const CONFIRMED = '/portal/confirmed';
const FIELD = 'proof-of-presence';

type ProofTools = { limit: SignInLimit; hasOidc: boolean };

/**
 * Asks for a proof before a route that wants a fresh one. The question carries the form along, and its own form goes to
 * the same address: with the proof, the route has what it was sent at first.
 */
export function requireFreshProof(scope: PortalApp, context: PortalContext, tools: ProofTools): void {
  scope.addHook('preValidation', async (request, reply) => {
    const given = takeProof(request.body);
    const wanted = wantedProof(request.method, request.routeOptions.config);
    if (wanted === null || viewerOf(request).isProofFresh) return;
    if (wanted === 'code' && !viewerOf(request).proofs.totp) return;
    if (request.method !== 'POST') return reply.redirect(hrefWith(PATH, { next: request.url }), 303);
    if (given === '') return showQuestion(request, reply, context, tools, null);
    try {
      await prove(request, context, tools, given);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      return showQuestion(request, reply, context, tools, error);
    }
  });
  confirmPages(scope, context, tools);
}

/** /portal/confirm leads to a page that wants a fresh proof; /portal/confirmed is where the provider leads back to. */
function confirmPages(app: PortalApp, context: PortalContext, tools: ProofTools): void {
  const querystring = Type.Object({ next: Type.Optional(Type.String()) });
  app.get(
    PATH,
    { config: { ...PAGES.signedIn, beforeSecondFactor: true }, schema: { querystring } },
    async (request, reply) => {
      const next = localPath(request.query.next);
      if (viewerOf(request).isProofFresh) return reply.redirect(next, 303);
      return showQuestion(request, reply, context, tools, null, { path: PATH, fields: [['next', next]] });
    },
  );
  const body = Type.Object({ next: formLine(4_096) });
  const config = { ...PAGES.signedIn, beforeSecondFactor: true } as const;
  app.post(PATH, { config, schema: { body } }, async (request, reply) =>
    reply.redirect(localPath(request.body.next), 303),
  );
  const confirmed = { ...PAGES.signedIn, beforeSecondFactor: true } as const;
  app.get(CONFIRMED, { config: confirmed }, async (_request, reply) =>
    sendPage(reply, {
      title: 'Confirmed',
      body: html`<p>Your identity provider has confirmed who you are. Close this tab, and continue in the one that you came from.</p>`,
    }),
  );
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
  request: FastifyRequest,
  { database, accounts, config, now }: PortalContext,
  { limit }: ProofTools,
  given: string,
): Promise<void> {
  const session = sessionOf(request);
  const { viewer } = session;
  if (viewer.proofs.totp) {
    await limit.countCode(request, viewer);
    const tools = { database, secretBox: accounts.secretBox, now };
    await useCode(tools, session, given, actorOf(request));
    await limit.codeSucceeded(request, viewer);
  } else {
    if (!config.portal.passwordSignIn) throw passwordsOff();
    const account = `user ${viewer.userId}`;
    await limit.count(request, account);
    await checkOwnPassword({ database }, viewer.userId, given);
    await limit.succeeded(request, account);
  }
  await noteProof(database, session.id);
  viewer.isProofFresh = true;
}

function passwordsOff(): RequestError {
  return new RequestError(
    'password_off',
    'Passwords are switched off here. Sign in again at your identity provider.',
  );
}

type Form = { path: string; fields: [string, string][] };

function showQuestion(
  request: FastifyRequest,
  reply: FastifyReply,
  { config }: PortalContext,
  { hasOidc }: ProofTools,
  error: RequestError | null,
  form: Form = { path: request.url, fields: fieldsOf(request.body) },
): FastifyReply {
  const viewer = viewerOf(request);
  const field = proofField(viewer, config.portal.passwordSignIn);
  const hidden = form.fields.map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  );
  const formOf = (inner: Markup, label: string, kind: string) =>
    html`<form method="post" action="${form.path}">${csrfField(viewer)}${hidden}${inner}<div class="buttons"><button class="${kind}">${label}</button></div></form>`;
  const canAtProvider = hasOidc && viewer.proofs.identity;
  const start = hrefWith('/portal/oidc/start', { again: 'yes', next: CONFIRMED });
  const body = html`${error !== null && noticeBox({ kind: 'error', text: error.message })}
${field !== null && formOf(field, 'Continue', 'primary')}
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
    return textField({ label, name: FIELD, autocomplete: 'one-time-code', required: true, maxLength: 64 });
  }
  if (!proofs.password || !passwordSignIn) return null;
  const label = 'Your password';
  return textField({
    label,
    name: FIELD,
    type: 'password',
    autocomplete: 'current-password',
    required: true,
    maxLength: 4_096,
  });
}

/** What the form held, as it came. */
function fieldsOf(body: unknown): [string, string][] {
  if (typeof body !== 'object' || body === null) return [];
  return Object.entries(body).flatMap(([name, value]) =>
    [value].flat().flatMap((one): [string, string][] => (typeof one === 'string' ? [[name, one]] : [])),
  );
}
