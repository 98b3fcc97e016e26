import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { findTenant, listPhoneNumbers } from '../../../accounts/accounts.ts';
import { listNumberPaces, setNumberPace } from '../../../accounts/number-pace.ts';
import { addWaba } from '../../../accounts/wabas.ts';
import { limitWebhookTargets, webhookTargets } from '../../../endpoints/webhook-targets.ts';
import type { TargetLists } from '../../../platform/http/outbound-url.ts';
import { checkAccessToken, checkUpstreamId, RequestError } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, type Viewer, viewerOf, wabaOf } from '../access/viewer.ts';
import { postForm, selectField, textField } from '../components/form.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { formLine, linesOf } from '../form-values.ts';
import { html, type Markup, nothing } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { removalForm } from './removal-pages.ts';
import { callGraph, checkWaba, type Finding, SIGNS } from './waba-check.ts';
import { addWabaForm, TOKEN_SAVED, targetForm, tokenForm } from './waba-forms.ts';
import { sendSetUp, wabaSetUpPage } from './waba-set-up.ts';

const ACTIVE = 'operator/tenants';
const TENANTS = { label: 'Tenants', href: '/portal/operator/tenants' };
/** With room for what is pasted along with it; the check of the token says what is wrong. */
const MAX_TOKEN_CHARS = 8_192;

const ROW_ID = /^\d{1,18}$/;

const DONE = {
  pace: 'The sending rate of the number is set.',
  'no-pace': 'Nothing was changed: the rate must be 1 to 1,000 messages per second, or empty.',
  'number-removed': 'The number is removed; its history is kept.',
  saved: TOKEN_SAVED,
  targets: 'The targets are saved. They count from the next attempt on.',
};

/** The operator's pages of WABAs. */
export function wabaPages(app: PortalApp, context: PortalContext): void {
  wabaPage(app, context);
  wabaSetUpPage(app, context);
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
    actions: html`<a class="button" href="/portal/operator/wabas/${wabaId}/set-up">Guided set-up</a><a class="button" href="/portal/w/${wabaId}">Open in the portal</a>`,
    done: DONE,
    body: html`<h2>Self-check</h2>${findingTable(Object.values(findings))}
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
<section class="card"><h2>Replace the access token</h2>${tokenForm(viewer, wabaId, { error: problem.token ?? null, from: 'waba' })}</section>
<section class="card"><h2>Remove the WABA</h2>${removalForm(viewer, `/portal/operator/wabas/${wabaId}/remove`, wabaId)}</section>`,
  };
  return sendPage(reply, view, Object.keys(problem).length === 0 ? 200 : 422);
}

function removeNumberButton(viewer: Viewer, wabaId: string, phoneNumberId: string): Markup {
  const id = html`<input type="hidden" name="phoneNumberId" value="${phoneNumberId}">`;
  const path = `/portal/operator/wabas/${wabaId}/remove-number`;
  return postForm(viewer, path, html`${id}<button class="danger">Remove</button>`);
}

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
    if (problem === null) return reply.redirect(`/portal/operator/wabas/${wabaId}/set-up?done=saved`, 303);
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
  const body = Type.Object({ accessToken: formLine(MAX_TOKEN_CHARS), from: Type.Optional(formLine()) });
  const options = { config: PAGES.operator, schema: { body } };
  app.post('/portal/operator/wabas/:wabaId/access-token', options, async (request, reply) => {
    const { wabaId, tenantId } = wabaOf(request);
    const { accessToken, from } = request.body;
    const problem = await saveChecked(request, context, { accessToken, wabaId, tenantId });
    const isSetUp = from === 'set-up';
    const page = `/portal/operator/wabas/${wabaId}${isSetUp ? '/set-up' : ''}`;
    if (problem === null) return reply.redirect(`${page}?done=saved`, 303);
    if (isSetUp) return sendSetUp(request, reply, context, problem);
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
  const options = { config: PAGES.operator, schema: { body } };
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
