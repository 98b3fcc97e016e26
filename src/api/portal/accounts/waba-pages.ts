import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { findTenant } from '../../../accounts/account-list.ts';
import { listPhoneNumbers } from '../../../accounts/accounts.ts';
import { addWaba } from '../../../accounts/wabas.ts';
import { AccountError } from '../../../platform/account-error.ts';
import { checkAccessToken, checkUpstreamId } from '../../../platform/account-input.ts';
import { formLine } from '../access/form-schema.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, type Viewer, viewerOf } from '../access/viewer.ts';
import { wabaOf } from '../access/waba-of.ts';
import { badge } from '../components/badge.ts';
import { emptyState } from '../components/empty-state.ts';
import { postForm } from '../components/form.ts';
import { noticeAfter } from '../components/notice.ts';
import { dataTable } from '../components/table.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { numberPaceAction, numberPaceSection } from './number-pace.ts';
import { removalForm } from './removal-pages.ts';
import { checkWaba, type Finding } from './self-check.ts';
import { callGraph } from './upstream-answers.ts';
import { addWabaForm, tokenForm } from './waba-forms.ts';

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
};

/** WABAs as the operator looks after them. */
export function wabaPages(app: PortalApp, context: PortalContext): void {
  wabaPage(app, context);
  addWabaAction(app, context);
  tokenAction(app, context);
  numberPaceAction(app, context);
}

/** GET /portal/operator/wabas/:wabaId: its numbers, and why no webhook would arrive. */
function wabaPage(app: PortalApp, context: PortalContext): void {
  const querystring = Type.Object({ done: Type.Optional(Type.String()) });
  const options = { config: PAGES.operator, schema: { querystring } };
  app.get('/portal/operator/wabas/:wabaId', options, async (request, reply) =>
    showWaba(request, reply, context, { done: request.query.done, error: null }),
  );
}

async function showWaba(
  request: FastifyRequest,
  reply: FastifyReply,
  context: PortalContext,
  { done, error }: { done?: string | undefined; error: string | null },
): Promise<FastifyReply> {
  const { wabaId, tenantId, businessName } = wabaOf(request);
  const viewer = viewerOf(request);
  const [numbers, findings, pace] = await Promise.all([
    listPhoneNumbers(context.database, wabaId),
    checkWaba(context, wabaId),
    numberPaceSection(context, viewer, wabaId),
  ]);
  const view = {
    title: `WABA ${wabaId}`,
    viewer,
    active: ACTIVE,
    trail: [TENANTS, { label: businessName, href: `${TENANTS.href}/${tenantId}` }],
    actions: html`<a class="button" href="/portal/w/${wabaId}">Open in the portal</a>`,
    notice: noticeAfter(done, DONE),
    body: html`<h2>Self-check</h2>${findingTable(findings)}
<h2>Numbers</h2>${
      numbers.length === 0
        ? emptyState('No number yet', 'Numbers are copied from upstream with the access token.')
        : dataTable(
            'Phone numbers',
            [
              { label: 'Number' },
              { label: 'Verified name' },
              { label: 'Id', kind: 'narrow' },
              { label: 'Quality', kind: 'narrow' },
              { label: '' },
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
<section class="card"><h2>Replace the access token</h2>${tokenForm(viewer, wabaId, error)}</section>
<section class="card"><h2>Remove the WABA</h2>${removalForm(viewer, `/portal/operator/wabas/${wabaId}/remove`, wabaId)}</section>`,
  };
  return sendPage(reply, view, error === null ? 200 : 422);
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
    [{ label: 'Status', kind: 'narrow' }, { label: 'Check' }, { label: 'Result' }],
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
      viewer,
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
  const options = { config: PAGES.operator, schema: { body } };
  app.post('/portal/operator/wabas/:wabaId/access-token', options, async (request, reply) => {
    const { wabaId, tenantId } = wabaOf(request);
    const problem = await saveChecked(request, context, { ...request.body, wabaId, tenantId });
    if (problem === null) return reply.redirect(`/portal/operator/wabas/${wabaId}?done=saved`, 303);
    return showWaba(request, reply, context, { error: problem });
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
    if (error instanceof AccountError) return error.message;
    throw error;
  }
}
