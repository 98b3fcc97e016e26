import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import {
  AccessTokenProblem,
  findTenant,
  listPhoneNumbers,
  openAccessToken,
} from '../../../accounts/accounts.ts';
import { readNumberLookup } from '../../../accounts/followed-numbers.ts';
import { listNumberPaces, setNumberPace } from '../../../accounts/number-pace.ts';
import { addWaba } from '../../../accounts/wabas.ts';
import { listEndpoints } from '../../../endpoints/store.ts';
import { limitWebhookTargets, webhookTargets } from '../../../endpoints/webhook-targets.ts';
import { readWabaArrivals } from '../../../inbound/inbox-admin.ts';
import { countWaitingBodies } from '../../../inbound/waiting-bodies.ts';
import type { SubscribedApp, UpstreamPhoneNumber } from '../../../platform/graph/graph-calls.ts';
import type { AccountClient } from '../../../platform/graph/graph-client.ts';
import { GraphError } from '../../../platform/graph/graph-error.ts';
import type { TargetLists } from '../../../platform/http/outbound-url.ts';
import { checkAccessToken, checkUpstreamId, RequestError } from '../../../platform/request-input.ts';
import { PAGES, withFreshProof } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, type Viewer, viewerOf, wabaOf } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { postForm, selectField, textField } from '../components/form.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { utcText } from '../components/time.ts';
import { formLine, linesOf } from '../form-values.ts';
import { html, type Markup, nothing } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { removalForm } from './removal-pages.ts';
import { addWabaForm, targetForm, tokenForm } from './waba-forms.ts';

const ACTIVE = 'operator/tenants';
const TENANTS = { label: 'Tenants', href: '/portal/operator/tenants' };
/** With room for what is pasted along with it; the check of the token says what is wrong. */
const MAX_TOKEN_CHARS = 8_192;

const ROW_ID = /^\d{1,18}$/;

const DONE = {
  pace: 'The sending rate of the number is set.',
  'no-pace': 'Nothing was changed: the rate must be 1 to 1,000 messages per second, or empty.',
  'number-removed': 'The number is removed; its history is kept.',
  saved: 'Upstream accepted the token; the WABA and its numbers are saved.',
  targets: 'The targets are saved. They count from the next attempt on.',
};

/** The operator's pages of WABAs. */
export function wabaPages(app: PortalApp, context: PortalContext): void {
  wabaPage(app, context);
  addWabaAction(app, context);
  tokenAction(app, context);
  numberPaceAction(app, context);
  targetAction(app, context);
}

/** GET /portal/operator/wabas/:wabaId: its numbers, and why no webhook would arrive. */
function wabaPage(app: PortalApp, context: PortalContext): void {
  app.get('/portal/operator/wabas/:wabaId', { config: PAGES.operator }, async (request, reply) =>
    showWaba(request, reply, context),
  );
}

/** What was wrong with a form of the page. */
type Problem = { token?: string; targets?: TargetLists & { error: string } };

async function showWaba(
  request: FastifyRequest,
  reply: FastifyReply,
  context: PortalContext,
  problem: Problem = {},
): Promise<FastifyReply> {
  const { wabaId, tenantId, businessName } = wabaOf(request);
  const viewer = viewerOf(request);
  const [numbers, findings, pace, targets] = await Promise.all([
    listPhoneNumbers(context.database, wabaId),
    checkWaba(context, wabaId),
    numberPaceSection(context, viewer, wabaId),
    webhookTargets(context.database, wabaId),
  ]);
  const view = {
    title: `WABA ${wabaId}`,
    active: ACTIVE,
    trail: [TENANTS, { label: businessName, href: `${TENANTS.href}/${tenantId}` }],
    actions: html`<a class="button" href="/portal/w/${wabaId}">Open in the portal</a>`,
    done: DONE,
    body: html`<h2>Self-check</h2>${findingTable(findings)}
<h2>Numbers</h2>${
      numbers.length === 0
        ? emptyState('No numbers yet', 'Numbers are copied from upstream with the access token.')
        : dataTable(
            'Phone numbers',
            [
              'Number',
              'Verified name',
              { label: 'Id', kind: 'narrow' },
              { label: 'Quality', kind: 'narrow' },
              '',
            ],
            numbers.map((number) => [
              number.displayPhoneNumber,
              number.verifiedName,
              html`<code>${number.phoneNumberId}</code>`,
              number.qualityRating ?? '–',
              removeNumberButton(viewer, wabaId, number.phoneNumberId),
            ]),
          )
    }
${pace}
<section class="card"><h2>Targets of webhooks and alerts</h2>${targetForm(viewer, wabaId, problem.targets ?? { ...targets, error: null })}</section>
<section class="card"><h2>Replace the access token</h2>${tokenForm(viewer, wabaId, problem.token ?? null)}</section>
<section class="card"><h2>Remove the WABA</h2>${removalForm(viewer, `/portal/operator/wabas/${wabaId}/remove`, wabaId)}</section>`,
  };
  return sendPage(reply, view, Object.keys(problem).length === 0 ? 200 : 422);
}

function removeNumberButton(viewer: Viewer, wabaId: string, phoneNumberId: string): Markup {
  const id = html`<input type="hidden" name="phoneNumberId" value="${phoneNumberId}">`;
  const path = `/portal/operator/wabas/${wabaId}/remove-number`;
  return postForm(viewer, path, html`${id}<button class="danger">Remove</button>`);
}

const SIGNS = {
  good: badge('good', 'OK'),
  bad: badge('bad', 'Problem'),
  unknown: badge('waiting', 'Check'),
};

function findingTable(findings: readonly Finding[]): Markup {
  return dataTable(
    'Self-check',
    [{ label: 'Status', kind: 'narrow' }, 'Check', 'Result'],
    findings.map(({ question, state, answer, advice }) => [
      SIGNS[state],
      question,
      html`${answer}${state !== 'good' && advice !== undefined && html`<br><span class="faint">${advice}</span>`}`,
    ]),
  );
}

/** POST /portal/operator/tenants/:id/wabas: nothing is saved unless upstream accepts the token for this WABA. */
function addWabaAction(app: PortalApp, context: PortalContext): void {
  const params = Type.Object({ id: Type.String() });
  const body = Type.Object({ wabaId: formLine(), accessToken: formLine(MAX_TOKEN_CHARS) });
  const options = { config: PAGES.operator, schema: { params, body } };
  app.post('/portal/operator/tenants/:id/wabas', options, async (request, reply) => {
    const { id } = request.params;
    const tenant = ROW_ID.test(id) ? await findTenant(context.database, id) : null;
    if (tenant === null) throw pageNotFound();
    const wabaId = request.body.wabaId.trim();
    const problem = await saveChecked(request, context, { tenantId: id, ...request.body, wabaId });
    if (problem === null) return reply.redirect(`/portal/operator/wabas/${wabaId}?done=saved`, 303);
    const viewer = viewerOf(request);
    const view = {
      title: 'Add a WABA',
      active: ACTIVE,
      trail: [TENANTS, { label: tenant.businessName, href: `${TENANTS.href}/${id}` }],
      body: html`<section class="card">${addWabaForm(viewer, id, { wabaId, error: problem })}</section>`,
    };
    return sendPage(reply, view, 422);
  });
}

/** POST /portal/operator/wabas/:wabaId/access-token */
function tokenAction(app: PortalApp, context: PortalContext): void {
  const body = Type.Object({ accessToken: formLine(MAX_TOKEN_CHARS) });
  const options = { config: withFreshProof(PAGES.operator), schema: { body } };
  app.post('/portal/operator/wabas/:wabaId/access-token', options, async (request, reply) => {
    const { wabaId, tenantId } = wabaOf(request);
    const problem = await saveChecked(request, context, { ...request.body, wabaId, tenantId });
    if (problem === null) return reply.redirect(`/portal/operator/wabas/${wabaId}?done=saved`, 303);
    return showWaba(request, reply, context, { token: problem });
  });
}

/** Saves a WABA with what upstream says about it; returns what is wrong, or null. */
async function saveChecked(
  request: FastifyRequest,
  context: PortalContext,
  { tenantId, wabaId, accessToken }: { tenantId: string; wabaId: string; accessToken: string },
): Promise<string | null> {
  try {
    const token = checkAccessToken(accessToken);
    checkUpstreamId('The WABA id', wabaId);
    const numbers = await callGraph(context, token, (client, key) => client.listPhoneNumbers(wabaId, key));
    if (!numbers.ok) return numbers.reason;
    const tools = { ...context.accounts, actor: actorOf(request) };
    await addWaba(tools, tenantId, { wabaId, phoneNumbers: numbers.value, accessToken: token });
    return null;
  } catch (error) {
    if (error instanceof RequestError) return error.message;
    throw error;
  }
}

/** POST /portal/operator/wabas/:wabaId/pace: how fast the messages of a number leave; empty goes back to the setting. */
function numberPaceAction(app: PortalApp, { database }: PortalContext): void {
  const body = Type.Object({ phoneNumberId: formLine(), messagesPerSecond: formLine() });
  const options = { config: PAGES.operator, schema: { body } };
  app.post('/portal/operator/wabas/:wabaId/pace', options, async (request, reply) => {
    const { wabaId } = wabaOf(request);
    const given = request.body.messagesPerSecond.trim();
    const messagesPerSecond = given === '' ? null : /^\d{1,6}$/.test(given) ? Number(given) : Number.NaN;
    const change = { phoneNumberId: request.body.phoneNumberId.trim(), messagesPerSecond };
    const done = await setNumberPace({ database, actor: actorOf(request) }, wabaId, change).then(
      () => 'pace',
      (error: unknown) => {
        if (!(error instanceof RequestError)) throw error;
        if (error.code === 'unknown_phone_number') throw pageNotFound();
        return 'no-pace';
      },
    );
    return reply.redirect(`/portal/operator/wabas/${wabaId}?done=${done}`, 303);
  });
}

/** POST /portal/operator/wabas/:wabaId/targets: where its webhooks and alerts may go, also those that wait. */
function targetAction(app: PortalApp, context: PortalContext): void {
  const list = Type.String({ maxLength: 10_000 });
  const body = Type.Object({ allow: list, deny: list });
  const options = { config: withFreshProof(PAGES.operator), schema: { body } };
  app.post('/portal/operator/wabas/:wabaId/targets', options, async (request, reply) => {
    const { wabaId } = wabaOf(request);
    const lists = { allow: linesOf(request.body.allow), deny: linesOf(request.body.deny) };
    try {
      await limitWebhookTargets({ database: context.database, actor: actorOf(request) }, wabaId, lists);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      return showWaba(request, reply, context, { targets: { ...lists, error: error.message } });
    }
    return reply.redirect(`/portal/operator/wabas/${wabaId}?done=targets`, 303);
  });
}

/** The paces of a WABA's numbers and the form that sets one; nothing without numbers. */
async function numberPaceSection(
  { database, config }: PortalContext,
  viewer: Viewer,
  wabaId: string,
): Promise<Markup> {
  const numbers = await listNumberPaces(database, wabaId);
  if (numbers.length === 0) return nothing;
  const usual = config.sending.messagesPerSecond;
  const options = numbers.map(({ phoneNumberId, displayPhoneNumber, messagesPerSecond }) => ({
    value: phoneNumberId,
    label: `${displayPhoneNumber} (${phoneNumberId}): ${messagesPerSecond ?? `${usual} (default)`}`,
  }));
  return html`<section class="card"><h2>Sending rate</h2>${postForm(
    viewer,
    `/portal/operator/wabas/${encodeURIComponent(wabaId)}/pace`,
    html`${selectField({ label: 'Number', name: 'phoneNumberId', options })}
${textField({ label: 'Messages per second', name: 'messagesPerSecond', maxLength: 6, hint: `From 1 to 1,000. Upstream allows 20 for a number that is also used in its app, 80 for most, 1,000 for some. Empty: the default of the installation, ${usual}.` })}
<div class="buttons"><button>Set the rate</button></div>`,
  )}</section>`;
}

/** One thing that must be right for webhooks to arrive; `advice` says what to do when it is not. */
type Finding = {
  question: string;
  state: 'good' | 'bad' | 'unknown';
  answer: string;
  advice?: string;
};

/**
 * Why would no webhook arrive? Goes the way of one, from the upstream app to the tenant's endpoint, and asks at each
 * step what can be asked from here.
 */
async function checkWaba(context: PortalContext, wabaId: string): Promise<Finding[]> {
  const { accounts, database } = context;
  const token = await openAccessToken(accounts, wabaId).catch((error: unknown) => {
    if (error instanceof AccessTokenProblem) return null;
    throw error;
  });
  const [upstreamNumbers, apps, numbers, arrivals, endpoints, lookup, waiting] = await Promise.all([
    callGraph(context, token, (client, key) => client.listPhoneNumbers(wabaId, key)),
    callGraph(context, token, (client, key) => client.listSubscribedApps(wabaId, key)),
    listPhoneNumbers(database, wabaId),
    readWabaArrivals(database, wabaId),
    listEndpoints(database, wabaId),
    readNumberLookup(database, wabaId),
    countWaitingBodies(database, wabaId),
  ]);
  const open = endpoints.filter(({ mode }) => mode === 'open').length;
  const quarantined = arrivals.quarantined.map(
    ({ reason, count }) => `${reason.replaceAll('_', ' ')}: ${count}`,
  );
  return [
    tokenFinding(token, upstreamNumbers),
    subscriptionFinding(apps, `${context.publicUrl}/upstream/webhook`),
    numberFinding(numbers, upstreamNumbers),
    followingFinding(lookup, waiting),
    {
      question: 'Has any message been received or sent?',
      state: arrivals.lastActivityAt === null ? 'unknown' : 'good',
      answer: arrivals.lastActivityAt === null ? 'Never.' : `Last at ${utcText(arrivals.lastActivityAt)}.`,
      advice: 'Send a message to the number from a phone and check again.',
    },
    {
      question: 'Did every received item create an event?',
      state: quarantined.length === 0 ? 'good' : 'unknown',
      answer: quarantined.length === 0 ? 'Yes.' : `Not in the last 7 days: ${quarantined.join(', ')}.`,
      advice:
        'These items are in quarantine: heliograph admin inbox status shows them, and heliograph admin inbox retry processes them again.',
    },
    {
      question: 'Is there an open endpoint?',
      state: open > 0 ? 'good' : 'bad',
      answer: `${open} of ${endpoints.length} endpoints are open.`,
      advice:
        'Add an endpoint under Webhooks, or enable one. Events wait for a paused or disabled endpoint. For a new endpoint, replay the status not_sent.',
    },
  ];
}

function tokenFinding(token: string | null, numbers: GraphAnswer<UpstreamPhoneNumber[]>): Finding {
  const question = 'Does upstream accept the access token?';
  const advice =
    'Create a system user token with whatsapp_business_messaging and whatsapp_business_management for this WABA, and save it below.';
  if (token === null) return { question, state: 'bad', answer: 'There is no readable token.', advice };
  if (numbers.ok) return { question, state: 'good', answer: 'Yes.' };
  return { question, state: numbers.refused ? 'bad' : 'unknown', answer: numbers.reason, advice };
}

function subscriptionFinding(apps: GraphAnswer<SubscribedApp[]>, callbackUrl: string): Finding {
  const question = 'Does upstream send this WABA’s webhooks here?';
  const advice = `Subscribe the app to the WABA (POST /{WABA}/subscribed_apps), and enter ${callbackUrl} as its callback URL with the verify token of the settings.`;
  if (!apps.ok) return { question, state: 'unknown', answer: apps.reason, advice };
  if (apps.value.length === 0) {
    return { question, state: 'bad', answer: 'No app is subscribed to the WABA.', advice };
  }
  const elsewhere = apps.value.filter(
    ({ overrideCallbackUrl }) => overrideCallbackUrl !== null && overrideCallbackUrl !== callbackUrl,
  );
  const names = apps.value.map(({ name, id }) => name || id).join(', ');
  if (elsewhere.length === apps.value.length) {
    const urls = elsewhere.map(({ overrideCallbackUrl }) => overrideCallbackUrl).join(', ');
    return { question, state: 'bad', answer: `Subscribed: ${names}, but sent to ${urls}.`, advice };
  }
  return { question, state: 'good', answer: `Subscribed: ${names}.` };
}

function numberFinding(
  ours: readonly { phoneNumberId: string }[],
  upstream: GraphAnswer<UpstreamPhoneNumber[]>,
): Finding {
  const question = 'Are all numbers of the WABA known here?';
  const advice = 'Numbers are copied from upstream daily. To do it now, save the access token again.';
  if (ours.length === 0) return { question, state: 'bad', answer: 'No number is known.', advice };
  if (!upstream.ok) return { question, state: 'unknown', answer: `${ours.length} known.`, advice };
  const known = new Set(ours.map(({ phoneNumberId }) => phoneNumberId));
  const missing = upstream.value.filter(({ phoneNumberId }) => !known.has(phoneNumberId));
  const listed = new Set(upstream.value.map(({ phoneNumberId }) => phoneNumberId));
  const gone = ours.filter(({ phoneNumberId }) => !listed.has(phoneNumberId));
  if (gone.length > 0) {
    const goneIds = gone.map(({ phoneNumberId }) => phoneNumberId).join(', ');
    return { question, state: 'unknown', answer: `Upstream does not list: ${goneIds}.`, advice };
  }
  if (missing.length === 0) return { question, state: 'good', answer: `${ours.length} known.` };
  const ids = missing.map(({ phoneNumberId }) => phoneNumberId).join(', ');
  return { question, state: 'bad', answer: `Not known: ${ids}.`, advice };
}

function followingFinding(
  { askedAt, problem }: { askedAt: Date | null; problem: string | null },
  waiting: number,
): Finding {
  const question = 'Are its numbers updated from upstream?';
  const asked = askedAt === null ? 'Not looked up yet.' : `Last looked up at ${utcText(askedAt)}.`;
  const bodies = waiting === 0 ? '' : ` ${waiting} bodies wait for a number that is not known yet.`;
  if (problem === null && waiting === 0) return { question, state: 'good', answer: asked };
  const advice =
    'The waiting bodies are processed as soon as upstream lists the number. Save a valid access token below.';
  return { question, state: 'bad', answer: `${asked} ${problem ?? ''}${bodies}`, advice };
}

/** What upstream returned: a value, a refusal, or nothing. */
type GraphAnswer<Value> = { ok: true; value: Value } | { ok: false; refused: boolean; reason: string };

/** Asks upstream with a token; never throws for what upstream does. */
async function callGraph<Value>(
  { upstream }: Pick<PortalContext, 'upstream'>,
  token: string | null,
  ask: (client: AccountClient, token: string) => Promise<Value>,
): Promise<GraphAnswer<Value>> {
  if (token === null) return { ok: false, refused: true, reason: 'There is no access token.' };
  try {
    return { ok: true, value: await ask(await upstream.client(), token) };
  } catch (error) {
    if (!(error instanceof GraphError)) throw error;
    const reason = error.transient
      ? `Upstream is not available at the moment: ${error.message}`
      : `Upstream refuses: ${error.message}`;
    return { ok: false, refused: !error.transient, reason };
  }
}
