import type { FastifyInstance } from 'fastify';
import { rejectForeignPages } from '../loopback-only.ts';
import { serializeWebhookBody } from '../payloads/webhook-body.ts';
import { SIGNUP_OUTCOMES, type SignupOutcome } from '../signup-register.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import { APP } from './app-subscriptions.ts';
import { registerCodeExchange } from './signup-calls.ts';

const DIALOG = '/:version(^v\\d+\\.\\d+$)/dialog/oauth';

/** Of the businesses that share and get WABAs. */
const PARTNER_ID = '710000000000001';
const OWNER_ID = '710000000000002';

type DialogQuery = Partial<
  Record<
    'client_id' | 'config_id' | 'response_type' | 'override_default_response_type' | 'redirect_uri' | 'state',
    string
  >
>;

/** The dialog of Embedded Signup in its redirect form, on which the developer plays the customer, and the exchange of its codes. */
export async function signupDialog(app: FastifyInstance, context: UpstreamContext): Promise<void> {
  rejectForeignPages(app);
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    (_request, body, done) => done(null, Object.fromEntries(new URLSearchParams(String(body)))),
  );
  registerCodeExchange(app, context);
  app.get<{ Querystring: DialogQuery }>(DIALOG, async ({ query }, reply) => {
    const problem = problemOf(query);
    const status = problem === null ? 200 : 400;
    return reply
      .code(status)
      .type('text/html; charset=utf-8')
      .headers({ 'cache-control': 'no-store', 'referrer-policy': 'same-origin' })
      .send(problem === null ? dialogPage() : page(`<p role="alert">${problem}</p>`));
  });
  app.post<{ Querystring: DialogQuery; Body: { outcome?: string; wabaId?: string } }>(
    DIALOG,
    async ({ query, body }, reply) => {
      const problem = problemOf(query);
      const outcome = body?.outcome ?? '';
      if (problem !== null || !isOutcome(outcome)) return reply.code(400).send(problem ?? 'Unknown outcome.');
      return reply.redirect(await returnAddress(context, query, { outcome, wabaId: body.wabaId }), 303);
    },
  );
}

function isOutcome(text: string): text is SignupOutcome {
  return Object.hasOwn(SIGNUP_OUTCOMES, text);
}

function problemOf(query: DialogQuery): string | null {
  if (query.client_id !== APP.id)
    return 'Invalid App ID: The provided app ID does not look like a valid app ID.';
  if (!/^\d+$/.test(query.config_id ?? '')) return 'config_id is missing.';
  if (query.response_type !== 'code' || query.override_default_response_type !== 'true') {
    return 'response_type must be code, and override_default_response_type true.';
  }
  const { protocol } = URL.parse(query.redirect_uri ?? '') ?? {};
  return protocol === 'https:' || protocol === 'http:' ? null : 'redirect_uri is not a URL.';
}

/** What the dialog of upstream returns on a cancel at a step is not documented for its redirect form: `current_step` is the name that its script gives. */
async function returnAddress(
  context: UpstreamContext,
  { redirect_uri: redirectUri = '', state }: DialogQuery,
  { outcome, wabaId }: { outcome: SignupOutcome; wabaId: string | undefined },
): Promise<string> {
  const address = new URL(redirectUri);
  const add = (members: Record<string, string>) => {
    for (const [name, value] of Object.entries(members)) address.searchParams.set(name, value);
  };
  if (state !== undefined) add({ state });
  if (outcome === 'error') {
    add({ error_code: '1349187', error_message: 'An unexpected error has occurred.' });
  } else if (outcome === 'cancel' || outcome === 'cancel_at_step') {
    add({ error: 'access_denied', error_reason: 'user_denied', error_description: 'Permissions error' });
    if (outcome === 'cancel_at_step') add({ current_step: 'PHONE_NUMBER_SETUP' });
  } else {
    const named = /^\d+$/.test(wabaId ?? '') ? wabaId : undefined;
    const { code, wabaIds } = context.signup.finish(outcome, { redirectUri, wabaId: named });
    for (const id of wabaIds) await reportPartner(context, id);
    add({ code });
  }
  return address.href;
}

/** Webhook `account_update`: a customer shares a WABA with the app; the entry is of the partner's business. */
async function reportPartner({ sender }: UpstreamContext, wabaId: string): Promise<void> {
  const value = { event: 'PARTNER_ADDED', waba_info: { waba_id: wabaId, owner_business_id: OWNER_ID } };
  const entry = {
    id: PARTNER_ID,
    time: Math.floor(Date.now() / 1000),
    changes: [{ field: 'account_update', value }],
  };
  const body = { object: 'whatsapp_business_account', entry: [entry] };
  // Upstream's dialog goes on too when the app cannot be reached.
  await sender.send(serializeWebhookBody(body)).catch(() => undefined);
}

function dialogPage(): string {
  const choices = Object.entries(SIGNUP_OUTCOMES).map(
    ([name, text], index) =>
      `<p><label><input type="radio" name="outcome" value="${name}"${index === 0 ? ' checked' : ''}> ${text}</label></p>`,
  );
  return page(`<p>You play the customer who connects a number. What happens?</p>
<form method="post"><fieldset><legend>Outcome</legend>${choices.join('\n')}</fieldset>
<p><label>Share this WABA instead of a new one <input name="wabaId" inputmode="numeric" pattern="\\d*"></label></p>
<p><button>Go on</button></p></form>`);
}

function page(content: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Sandbox: Embedded Signup</title></head>
<body><main><h1>Embedded Signup of the sandbox</h1>${content}</main></body></html>`;
}
